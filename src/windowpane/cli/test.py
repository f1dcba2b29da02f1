"""`windowpane test`: run the context tests that stand beside an agent, or make one of a turn."""

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ElementTree, SubElement

from pydantic import TypeAdapter

from windowpane.api.context_tests import Broke, ContextTest, Report, Verdict
from windowpane.cli.door import Place, ask
from windowpane.cli.naming import find_session, find_there
from windowpane.cli.preview import NOWHERE
from windowpane.cli.screen import Screen, counted
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError
from windowpane.insight.context_tests import keep_turn, render_test, run_tests
from windowpane.settings import Settings

if TYPE_CHECKING:
    from windowpane.client import Client

_REPORTS: TypeAdapter[list[Report]] = TypeAdapter(list[Report])
_WANTED: dict[Broke, str] = {
    "must": "must be selected",
    "must_not": "must not be selected",
    "unexpected": "is neither in must nor in may",
    "unknown": "is named in the test",
}


def run(place: Place, agent: str | None, *, as_json: bool, junit: Path | None) -> int:
    """Run the tests of an agent, or of all, print how they went, and return the exit code: 1 when any failed.

    Raises:
        AgentNotFoundError: no such agent.
        InvalidInputError: there are no tests, which in a pipeline is more likely a mistake than a success.
    """

    async def here(engine: Engine) -> list[Report]:
        return [await run_tests(engine, name) for name in ([agent] if agent else engine.agents.names())]

    async def there(client: "Client") -> list[Report]:
        names = [agent] if agent else [one.name for one in (await client.agents()).agents]
        return [await client.run_tests(name) for name in names]

    if isinstance(place, Settings):
        place = place.model_copy(update={"store_url": NOWHERE})
    reports = ask(place, here, there)
    if not any(report.results or report.problems for report in reports):
        raise InvalidInputError(
            "there are no tests; write tests/*.yaml beside agent.yaml, or `windowpane test --from-turn SESSION TURN`"
        )
    screen = Screen()
    if as_json:
        screen.write(_REPORTS.dump_json(reports, indent=2).decode() + "\n")
    else:
        draw_reports(screen, reports)
    if junit is not None:
        write_junit(junit, reports)
    return 0 if all(report.passed for report in reports) else 1


def from_turn(place: Place, session: str, turn: int) -> None:
    """Make a test of a turn and print it.

    Raises:
        SessionNotFoundError: no such session.
        TurnNotFoundError: the session has no such turn, or nothing is on record for it.
    """

    async def here(engine: Engine) -> ContextTest:
        return await keep_turn(engine, await find_session(engine, session), turn)

    async def there(client: "Client") -> ContextTest:
        return (await client.keep_test((await find_there(client, session)).id, turn)).test

    test = ask(place, here, there)
    screen = Screen(remarks_aside=True)
    screen.remark(f"Wrote {test.file} into the agent's folder:")
    screen.write(render_test(test))


def draw_reports(screen: Screen, reports: list[Report]) -> None:
    """Print how tests went: a line for each, and under a failed one what is not as it should be."""
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


def _draw_result(screen: Screen, agent: str, result: Verdict) -> None:
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


def write_junit(file: Path, reports: list[Report]) -> None:
    """Write how tests went as JUnit XML, which build servers show.

    Raises:
        InvalidInputError: the file cannot be written.
    """
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
