"""Labelled questions of an agent's selection, and how a measure of it is printed. `eval` and `tune` share it."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from windowpane.cli.ask_analytics import ask_analytics
from windowpane.cli.connect import with_engine
from windowpane.cli.settings import settings
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.context_tests import ContextTest
    from windowpane.api.evaluation import Measure
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine
    from windowpane.insight.analytics.update import AnalyticsUpdater, Kept
    from windowpane.insight.evaluate import LabelledQuestion
    from windowpane.search.settings import SearchSettings

LOOKED_AT = 2000
"""How many of the latest turns are taken as labels."""

DOMAINS = {"text": "rules and references", "tool": "tools"}


def questions_of(agent: str, tests: "Sequence[ContextTest]") -> "tuple[list[LabelledQuestion], SearchSettings]":
    """Return labelled questions, from tests or from past turns, and the agent's search settings."""
    from windowpane.insight.evaluate import asked_before, asked_now
    from windowpane.search.settings import search_settings

    async def from_labels(engine: "Engine") -> "tuple[list[LabelledQuestion], SearchSettings]":
        return await asked_now(engine, agent, tests), search_settings(engine.agents.current(agent).settings.search)

    async def from_use(
        engine: "Engine", updater: "AnalyticsUpdater", kept: "Kept"
    ) -> "tuple[list[LabelledQuestion], SearchSettings]":
        import anyio.to_thread

        found = search_settings(engine.agents.current(agent).settings.search)
        lessons = await anyio.to_thread.run_sync(partial(updater.analytics.lessons, None, agent, limit=LOOKED_AT))
        return await asked_before(engine, lessons), found

    async def never(client: "Client") -> "tuple[list[LabelledQuestion], SearchSettings]":
        raise AssertionError("a server evaluates on its own")

    return with_engine(settings(), from_labels) if tests else ask_analytics(from_use, never)


def draw_measure(screen: Screen, name: str, measure: "Measure") -> None:
    """Print recall, precision and F1 in one line."""
    figures: Sequence[tuple[str, float | None]] = (
        ("recall", measure.recall),
        ("precision", measure.precision),
        ("F1", measure.f1),
    )
    shares = ", ".join(f"{title} {'–' if share is None else f'{share:.3f}'}" for title, share in figures)
    screen.line(f"{name}: {shares}, {measure.mean_selected or 0:.2f} selected on average")
