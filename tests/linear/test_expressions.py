"""No regular expression works for longer than a text is long, whatever the text says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from linear.expressions import SOURCES, expressions
from patience import PATIENCE_S

QUADRATIC = r"""
from linear.expressions import Expression
from linear.match_all import slow
import json
print(json.dumps([each["pattern"] for each in slow([
    Expression("a", r"\s+$", 0, ("search",)),
    Expression("b", r"\s++(?!.)", 0, ("match",)),
    Expression("c", r"<!--.*?-->", 0, ("findall",)),
    Expression("d", r"(?<!\d)\d+(?:\.\d+)?", 0, ("search",)),
    Expression("e", r"(\w+-?)+:", 0, ("match",)),
    Expression("f", r'"(?:\\.|[^"])*"', 0, ("sub",)),
])]))
"""


def test_each_call_of_the_module_re_is_among_the_expressions() -> None:
    written = {
        f"{'.'.join(file.relative_to(SOURCES).with_suffix('').parts)}:{number}"
        for file in SOURCES.rglob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"\bre\.(?:compile|search|match|fullmatch|split|findall|finditer|subn?)\(", line)
    }

    found = {each.place for each in expressions()}

    assert len(found) > 200
    # Those that a caller gives, which `expressions.py` names with the reason.
    assert written - found == {"server.middleware.door_errors:26"}
    assert found - written == set()


def test_no_expression_takes_the_square_of_a_hostile_text() -> None:
    assert json.loads(run("-m", "linear.match_all")) == []


def test_expressions_that_take_the_square_of_a_text_are_found() -> None:
    found = json.loads(run("-c", QUADRATIC))

    assert found == [repr(each) for each in (r"\s+$", r"<!--.*?-->", r"(\w+-?)+:", r'"(?:\\.|[^"])*"')]


def run(*arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
