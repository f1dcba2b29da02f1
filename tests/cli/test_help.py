import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command
from typer.testing import CliRunner

import windowpane
from cli.running import environment
from windowpane.api.analytics import Listed
from windowpane.cli import app


def paths(found: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(found, TyperGroup):
        for name, below in found.commands.items():
            yield from paths(below, (*path, name))


@pytest.mark.parametrize("path", list(paths(get_command(app))), ids=" ".join)
def test_help_says_what_each_option_is_for_and_gives_an_example(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"])

    words = " ".join(shown.output.split())
    assert shown.exit_code == 0
    assert "\n    windowpane " in shown.output
    for name, purpose in purposes(command(path)):
        assert name in words
        assert purpose
        assert purpose in words


@pytest.mark.parametrize("path", list(paths(get_command(app))), ids=" ".join)
def test_a_list_of_commands_has_their_whole_first_sentences(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"]).output

    assert [line for line in shown.split("\nOptions:")[-1].splitlines() if line.endswith("...")] == []


def test_every_list_that_can_be_had_as_csv_is_in_the_help() -> None:
    shown = CliRunner().invoke(app, ["analytics", "--help"]).output

    assert [name for name in get_args(Listed) if name not in shown] == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sessions", "No sessions yet. `windowpane chat` starts one.\n"),
        ("stats", "".join(f"{name:<10}{0:>12}\n" for name in ("sessions", "messages", "turns", "tokens", "fetched"))),
    ],
)
def test_what_a_store_can_tell_loads_neither_the_engine_nor_what_draws_colours(
    tmp_path: Path, command: str, said: str
) -> None:
    program = f"""
import atexit, sys
from windowpane.cli import main
heavy = ("windowpane.engine", "windowpane.context.request", "numpy", "structlog", "rich", "httpx2", "pydantic_ai")
atexit.register(lambda: print([name for name in heavy if name in sys.modules]))
sys.argv = ["windowpane", {command!r}]
main()
"""
    run = [sys.executable, "-c", program]
    listed = subprocess.run(run, env=environment(tmp_path), check=True, capture_output=True, text=True)

    assert listed.stdout == f"{said}[]\n"


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (["context", "last"], []),
        (["calls", "last"], []),
        (["compare", "last", "1", "1"], []),
        (["explain", "last", "1"], ["numpy"]),
    ],
)
def test_a_command_that_looks_back_loads_no_engine(tmp_path: Path, command: list[str], needed: list[str]) -> None:
    (tmp_path / "agents/guide/prompts").mkdir(parents=True)
    (tmp_path / "agents/guide/agent.yaml").write_text("model: echo\n")
    (tmp_path / "agents/guide/prompts/core.md").write_text("Be brief.")
    with windowpane.open_sync(agents=tmp_path / "agents", data=tmp_path) as pane:
        pane.ask(pane.sessions.create().id, "Hello?")
    program = f"""
import atexit, sys
from windowpane.cli import main
heavy = ("windowpane.engine", "windowpane.memory.memory", "numpy", "structlog", "httpx2", "pydantic_ai", "mcp")
atexit.register(lambda: print([name for name in heavy if name in sys.modules]))
sys.argv = ["windowpane", *{command!r}]
main()
"""
    run = [sys.executable, "-c", program]
    shown = subprocess.run(run, env=environment(tmp_path), check=True, capture_output=True, text=True)

    assert shown.stdout.splitlines()[-1] == str(needed)


def test_help_loads_neither_the_engine_nor_anything_large() -> None:
    program = "import sys, windowpane.cli; print([m for m in ('pydantic', 'mcp', 'rich.console') if m in sys.modules])"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert loaded.stdout == "[]\n"


def command(path: tuple[str, ...]) -> object:
    found: object = get_command(app)
    for name in path:
        assert isinstance(found, TyperGroup)
        found = found.commands[name]
    return found


def purposes(found: object) -> Iterator[tuple[str, str]]:
    assert isinstance(found, TyperCommand | TyperGroup)
    for parameter in found.params:
        if isinstance(parameter, TyperOption):
            yield parameter.opts[-1], parameter.help or ""
        elif isinstance(parameter, TyperArgument):
            yield (parameter.metavar or "").strip("[]"), parameter.help or ""
