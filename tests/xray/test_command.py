"""`windowpane xray -- COMMAND` runs a program untouched, and `report` shows what it sent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from windowpane.errors import InvalidSettingError
from windowpane.xray.environment import child_environment
from windowpane.xray.upstreams import PROVIDERS, upstreams_of
from wire.process import wire_process

ADDRESS = "http://127.0.0.1:9"
XRAY = [sys.executable, "-m", "windowpane", "xray"]
PROGRAM = textwrap.dedent(
    """
    import os, sys
    import openai
    client = openai.OpenAI(max_retries=0)
    messages = [{"role": "user", "content": sys.stdin.readline().strip()}]
    tool = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
    for question in ("And then?", None):
        said = client.chat.completions.create(model="gpt-4o", messages=messages, tools=[tool], stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in said if chunk.choices)
        print(text)
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": question}]
    sys.stderr.write("bye")
    sys.exit(7)
    """
)


def test_a_program_runs_as_it_would_and_its_calls_are_recorded(tmp_path: Path) -> None:
    script = tmp_path / "answers.json"
    script.write_text(json.dumps([{"text": "First."}, {"text": "Second."}]))
    with wire_process(script) as url:
        environ = {
            **os.environ,
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "sk-planted-key-0123456789",
            "WINDOWPANE_DATA": str(tmp_path / "data"),
        }
        ran = subprocess.run(
            [*XRAY, "--", sys.executable, "-c", PROGRAM],
            input="Hello?\n",
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        shown = subprocess.run([*XRAY, "report", "last"], env=environ, capture_output=True, text=True, check=True)
        listed = subprocess.run(
            [*XRAY, "report", "last", "--json"], env=environ, capture_output=True, text=True, check=True
        )

    assert (ran.returncode, ran.stdout) == (7, "First.\nSecond.\n")
    assert ran.stderr.startswith("bye")
    assert "windowpane: 2 calls recorded in 1 session" in ran.stderr
    report = json.loads(listed.stdout)
    first, second = report["calls"]
    assert (report["session"]["title"], report["session"]["origin"]["program"]) == ("Hello?", "openai-python")
    assert (first["shared_bytes"], second["shared_bytes"] > 50) == (None, True)
    assert {share["kind"] for share in second["kinds"]} == {"message", "reply", "tool", "setting"}
    assert sum(share["tokens"] for share in second["kinds"]) == second["call"]["usage"]["input_tokens"]
    assert [(tool["name"], tool["calls"]) for tool in report["tools"]] == [("clock", 0)]
    assert "Tools: 1 offered, 1 never called" in shown.stdout
    assert b"planted" not in b"".join(file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file())


def test_a_program_that_is_killed_or_missing_ends_as_a_shell_would_end_it(tmp_path: Path) -> None:
    environ = {**os.environ, "WINDOWPANE_DATA": str(tmp_path / "data")}
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    killed = subprocess.run([*XRAY, "--", sys.executable, "-c", dies], env=environ, check=False, capture_output=True)
    missing = subprocess.run(
        [*XRAY, "--", "no-such-program-here"], env=environ, check=False, capture_output=True, text=True
    )

    assert killed.returncode == 128 + signal.SIGTERM
    assert killed.stderr.decode().splitlines()[-2:] == [
        "windowpane: 0 calls recorded in 0 sessions",
        "  no call came through the proxy: a program that reads its address from a file of its own (Codex) "
        "needs it there; see `windowpane xray --listen`",
    ]
    assert (missing.returncode, "no-such-program-here cannot be run: there is no such program" in missing.stderr) == (
        1,
        True,
    )


def test_what_is_logged_waits_until_the_program_has_ended(tmp_path: Path) -> None:
    calls = """
    import os, sys, urllib.request
    try:
        urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", b"{}")
    except urllib.error.HTTPError as error:
        sys.stderr.write(f"status {error.code}\\nend of the program\\n")
    """
    ran = subprocess.run(
        [*XRAY, "--", sys.executable, "-c", textwrap.dedent(calls)],
        env={**os.environ, "OPENAI_BASE_URL": f"{ADDRESS}/v1", "WINDOWPANE_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=True,
    )

    lines = ran.stderr.splitlines()
    assert lines[:2] == ["status 502", "end of the program"]
    assert json.loads(lines[2])["event"] == "xray.upstream"
    assert lines[3] == "windowpane: 1 call recorded in 1 session"


def test_variables_lead_to_the_proxy_and_the_proxy_to_where_they_led() -> None:
    before = {
        "OPENAI_BASE_URL": "https://gateway.example/llm/v1/",
        "OPENAI_API_BASE": "https://other.example",
        "OLLAMA_HOST": "0.0.0.0",
        "ANTHROPIC_BASE_URL": "https://claude.example",
        "HTTP_PROXY": "http://proxy.example:3128",
        "NO_PROXY": "internal.example",
    }

    child = child_environment(before, ADDRESS, {"google": "https://vertex.example"})

    assert {name: child.variables[name] for name in before if name != "HTTP_PROXY"} == {
        "OPENAI_BASE_URL": f"{ADDRESS}/openai/v1",
        "OPENAI_API_BASE": f"{ADDRESS}/openai_api_base",
        "OLLAMA_HOST": f"{ADDRESS}/ollama",
        "ANTHROPIC_BASE_URL": f"{ADDRESS}/anthropic",
        "NO_PROXY": "internal.example,127.0.0.1,localhost",
    }
    assert child.upstreams == {
        **PROVIDERS,
        "openai": "https://gateway.example/llm",
        "openai_api_base": "https://other.example",
        "ollama": "http://127.0.0.1:11434",
        "anthropic": "https://claude.example",
        "google": "https://vertex.example",
    }


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_no_proxy_of_the_environment_comes_between_a_program_and_ours(name: str) -> None:
    child = child_environment({name: "http://proxy.example:3128"}, ADDRESS, {})

    assert (child.variables["NO_PROXY"], child.variables["no_proxy"]) == ("127.0.0.1,localhost", "127.0.0.1,localhost")
    assert "NO_PROXY" not in child_environment({name: ""}, ADDRESS, {}).variables


@pytest.mark.parametrize(
    "named",
    [{"a b": "https://x.example"}, {"x": "ftp://x.example"}, {"x": "x.example"}, {"x": "https://u:p@x.example"}],
)
def test_an_upstream_that_cannot_be_one_is_refused(named: dict[str, str]) -> None:
    with pytest.raises(InvalidSettingError):
        upstreams_of(named)


def test_a_page_in_a_browser_cannot_use_the_proxy_not_even_to_read(tmp_path: Path) -> None:
    asks = """
    import os, urllib.request
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        try:
            urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/models", headers=headers))
        except urllib.error.HTTPError as error:
            print(error.code)
    """
    ran = subprocess.run(
        [*XRAY, "--", sys.executable, "-c", textwrap.dedent(asks)],
        env={**os.environ, "OPENAI_BASE_URL": f"{ADDRESS}/v1", "WINDOWPANE_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.split() == ["403", "403", "421"]
