"""`windowpane test`: run the context tests of an agent, or make a test from a turn."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import NOT_STORED, with_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import ANYWHERE, Json, new_app, where
from windowpane.cli.terminal import Screen, counted
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.api.context_tests import Broke, Report, Verdict
    from windowpane.api.pane import Pane

app = new_app()

_WANTED: "dict[Broke, str]" = {
    "must": "must be selected",
    "must_not": "must not be selected",
    "unexpected": "is in neither must nor may",
    "unknown": "is named in the test",
}


@app.command("test")
@where(*ANYWHERE)
def run_tests(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Agent name. Default: all agents.")] = None,
    from_turn: Annotated[
        tuple[str, int] | None,
        typer.Option("--from-turn", metavar="SESSION TURN", help="Write a test that this turn passes, and exit."),
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")] = None,
    as_json: Json = False,
) -> None:
    """Run an agent's context tests. Exit code 1: a test failed.

    A test says which items a message must, may and must not select. Tests are in tests/*.yaml in the agent's folder. No
    model is called.

    \b
    Examples:
      windowpane test
      windowpane test guide --junit report.xml
      windowpane test --from-turn last 2
    """
    if from_turn is not None:
        with_pane(lambda pane: _save_test(pane, *from_turn))
    else:
        with_pane(lambda pane: _run(pane, agent, junit, as_json=as_json), store_url=NOT_STORED)


async def _save_test(pane: "Pane", session: str, turn: int) -> None:
    """Write a test that a turn passes, and print it."""
    saved = await pane.turns.save_test((await find_session(pane, session)).id, turn)
    screen = Screen(remarks_aside=True)
    screen.remark(f"Wrote {saved.test.file} in the agent's folder:")
    screen.write(saved.text)


async def _run(pane: "Pane", agent: str | None, junit: Path | None, *, as_json: bool) -> None:
    names = [agent] if agent else [known.name for known in await pane.agents.list()]
    reports = [await pane.agents.run_tests(name) for name in names]
    # In a pipeline, no tests are more likely a mistake than a success.
    if not any(report.results or report.problems for report in reports):
        raise InvalidInputError(
            "no tests found; write tests/*.yaml beside agent.yaml, or run `windowpane test --from-turn SESSION TURN`"
        )
    screen = Screen()
    screen.json(reports) if as_json else draw_reports(screen, reports)
    if junit is not None:
        write_junit(junit, reports)
    raise typer.Exit(0 if all(report.passed for report in reports) else 1)


def draw_reports(screen: Screen, reports: "list[Report]") -> None:
    """Print the result of each test, and the reasons of a failure below it."""
    for report in reports:
        for problem in report.problems:
            line = f":{problem.line}" if problem.line else ""
            screen.line(f"✗ {report.agent}/{problem.file}{line}: {problem.reason}", "red")
        for result in report.results:
            _draw_result(screen, report.agent, result)
    count = sum(len(report.results) for report in reports)
    failed = sum(not result.passed for report in reports for result in report.results)
    unusable = sum(len(report.problems) for report in reports)
    ended = [f"{failed} failed" if failed else "all passed", *([counted(unusable, "problem")] if unusable else [])]
    screen.line(f"{counted(count, 'test')}, {', '.join(ended)}", "bold")


def _draw_result(screen: Screen, agent: str, result: "Verdict") -> None:
    test = result.test
    where = f"{agent}/{test.file}:{test.line}"
    screen.line(f"{'✓' if result.passed else '✗'} {test.name}  {where}", "green" if result.passed else "red")
    if result.passed:
        return
    screen.line(f"    message: {' '.join(test.message.split())[:200]}")
    for breach in result.breaches:
        sign = "-" if breach.broke == "must" else "?" if breach.broke == "unknown" else "+"
        screen.line(f"    {sign} {breach.ref} {_WANTED[breach.broke]}: {breach.reason}")
    taken = ", ".join(f"{s.ref} {s.score:.2f}" if s.score is not None else str(s.ref) for s in result.selected)
    screen.line(f"    selected: {taken or 'nothing'}", "dim")
    for note in result.degraded:
        screen.line(f"    degraded: {note}", "yellow")


def write_junit(file: Path, reports: "list[Report]") -> None:
    """Write the results as JUnit XML for CI servers.

    Raises:
        InvalidInputError: the file cannot be written.
    """
    from xml.etree.ElementTree import Element, ElementTree, SubElement

    root = Element("testsuites")
    for report in reports:
        failed = sum(not result.passed for result in report.results) + len(report.problems)
        count = len(report.results) + len(report.problems)
        suite = SubElement(root, "testsuite", name=report.agent, tests=str(count), failures=str(failed))
        for problem in report.problems:
            case = SubElement(suite, "testcase", classname=f"{report.agent}.{problem.file}", name="can be read")
            SubElement(case, "failure", message=problem.reason)
        for result in report.results:
            case = SubElement(suite, "testcase", classname=f"{report.agent}.{result.test.file}", name=result.test.name)
            if not result.passed:
                lines = [f"{breach.ref} {_WANTED[breach.broke]}: {breach.reason}" for breach in result.breaches]
                SubElement(case, "failure", message=lines[0]).text = "\n".join(lines)
    try:
        ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written: {error.strerror}") from None
