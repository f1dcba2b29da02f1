"""`windowpane eval` and `windowpane tune`: how well the selection does, and settings that would do better."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread
import typer
from pydantic import TypeAdapter

from windowpane.api.context_tests import ContextTest
from windowpane.api.evaluation import Evaluation, Measure, Proposal
from windowpane.cli.analytics import with_books
from windowpane.cli.door import Place, with_engine
from windowpane.cli.screen import Screen, counted
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError
from windowpane.insight.analytics.update import Bookkeeper, Kept
from windowpane.insight.evaluate import Question, asked_before, asked_now, evaluate, read_labels
from windowpane.insight.tune import tune, write_settings
from windowpane.search.settings import SearchSettings, search_settings
from windowpane.settings import Settings

LOOKED_AT = 2000
"""How many of the latest turns are taken as labels."""

BAR = 40
_EVALUATION: TypeAdapter[Evaluation] = TypeAdapter(Evaluation)
_PROPOSALS: TypeAdapter[tuple[Proposal, ...]] = TypeAdapter(tuple[Proposal, ...])
_NAMES = {"text": "rules and references", "tool": "tools"}


def run_eval(place: Place, agent: str, labels: Path | None, *, as_json: bool) -> None:
    """Print how well an agent's selection does on the questions of a file, or on past turns.

    Raises:
        AgentNotFoundError: no such agent.
        InvalidInputError: there are no questions, or the file cannot be read.
    """
    tests = read_labels(labels) if labels else ()
    if isinstance(place, Settings):
        questions, found = _questions(place, agent, tests)
        evaluation = evaluate(agent, questions, found)
    else:
        evaluation = place.ask(lambda client: client.evaluate(agent, tests))
    screen = Screen()
    if as_json:
        screen.write(_EVALUATION.dump_json(evaluation, indent=2).decode() + "\n")
    else:
        draw_evaluation(screen, evaluation)


def run_tune(place: Place, agent: str, labels: Path | None, *, write: bool, yes: bool, as_json: bool) -> None:
    """Print settings that would do better; with `write`, put them into `agent.yaml` after asking.

    Raises:
        AgentNotFoundError: no such agent.
        InvalidInputError: there are too few questions, or `agent.yaml` is a server's.
    """
    if write and not isinstance(place, Settings):
        raise InvalidInputError("--write changes an agent.yaml that is here; leave out --url, or edit it on the server")
    tests = read_labels(labels) if labels else ()
    if isinstance(place, Settings):
        proposals = tune(*_questions(place, agent, tests))
    else:
        proposals = place.ask(lambda client: client.tune(agent, tests))
    screen = Screen(remarks_aside=as_json)
    if as_json:
        screen.write(_PROPOSALS.dump_json(proposals, indent=2).decode() + "\n")
    else:
        for proposal in proposals:
            draw_proposal(screen, proposal)
    better = [proposal for proposal in proposals if proposal.better]
    if not isinstance(place, Settings) or not write or not better:
        hint = " `--write` puts this into agent.yaml, after asking." if better else ""
        screen.remark(f"Nothing was changed.{hint}")
        return
    if not yes and not typer.confirm(f"Write this into agent.yaml of {agent}?"):
        screen.remark("Nothing was changed.")
        raise typer.Exit(1)

    async def written(engine: Engine) -> str:
        return write_settings(engine.agents.current(agent), better).file

    screen.remark(f"Changed {with_engine(place, written)} of {agent}.")


def _questions(settings: Settings, agent: str, tests: Sequence[ContextTest]) -> tuple[list[Question], SearchSettings]:
    async def from_labels(engine: Engine) -> tuple[list[Question], SearchSettings]:
        return await asked_now(engine, agent, tests), search_settings(engine.agents.current(agent).settings.search)

    async def from_use(engine: Engine, books: Bookkeeper, kept: Kept) -> tuple[list[Question], SearchSettings]:
        found = search_settings(engine.agents.current(agent).settings.search)
        lessons = await anyio.to_thread.run_sync(partial(books.ledger.lessons, None, agent, limit=LOOKED_AT))
        return await asked_before(engine, lessons), found

    return with_engine(settings, from_labels) if tests else with_books(settings, from_use)


def draw_evaluation(screen: Screen, found: Evaluation) -> None:
    """Print how well a selection does, and how far its scores can be believed."""
    _draw_measure(screen, counted(found.whole.questions, "question"), found.whole)
    for domain, measure in found.by_domain.items():
        if len(found.by_domain) > 1:
            _draw_measure(screen, _NAMES[domain], measure)
    screen.line("Needed, by score (a score of 0.4 should mean four in ten):", "bold")
    for step in found.calibration:
        share = step.share or 0.0
        bar = "█" * round(share * BAR)
        said = f"{share:4.0%} of {step.candidates:,}" if step.candidates else "–"
        screen.line(f"  {step.low:.1f}–{step.low + 0.1:.1f} {bar:<{BAR}} {said}")
    for wrong in found.wrong[:10]:
        parts = [f"left out {', '.join(map(str, wrong.missed))}"] if wrong.missed else []
        parts += [f"needless {', '.join(map(str, wrong.needless))}"] if wrong.needless else []
        screen.line(f"  ✗ {wrong.name}: {'; '.join(parts)}", "dim")


def draw_proposal(screen: Screen, found: Proposal) -> None:
    """Print settings before and after, measured on questions that they were not chosen by."""
    screen.line(
        f"{_NAMES[found.domain]}, {counted(found.before.questions, 'question')} in {found.folds} groups:", "bold"
    )
    _draw_measure(screen, "  now", found.before)
    _draw_measure(screen, "  tuned, on questions held out", found.after)
    if found.better:
        screen.line(f"  proposed: {', '.join(f'{name}: {value}' for name, value in found.changes.items())}", "green")
    else:
        screen.line("  nothing clearly better was found; keep the settings")


def _draw_measure(screen: Screen, name: str, measure: Measure) -> None:
    figures: Sequence[tuple[str, float | None]] = (
        ("recall", measure.recall),
        ("precision", measure.precision),
        ("F1", measure.f1),
    )
    shares = ", ".join(f"{title} {'–' if share is None else f'{share:.3f}'}" for title, share in figures)
    screen.line(f"{name}: {shares}, {measure.mean_selected or 0:.2f} selected on average")
