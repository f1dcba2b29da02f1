"""Context tests of an agent, and how they went."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from windowpane.context.agents import Problem
from windowpane.context.items import ItemRef
from windowpane.context.messages import Utterance

Broke = Literal["must", "must_not", "unexpected", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTest:
    """One test, and where it stands. `may` is None when anything else may be selected too."""

    file: str = ""
    line: int = 1
    name: str
    message: str
    history: tuple[Utterance, ...] = ()
    added: tuple[ItemRef, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    must: tuple[ItemRef, ...] = ()
    may: tuple[ItemRef, ...] | None = None
    must_not: tuple[ItemRef, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextTests:
    """An agent's tests, and the files or entries that cannot be used."""

    tests: tuple[ContextTest, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """An item that a message selected, with its score."""

    ref: ItemRef
    score: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """An item that is not where the test wants it, and why."""

    ref: ItemRef
    broke: Broke
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a test went. `degraded` says what the selection had to do without."""

    test: ContextTest
    passed: bool
    selected: tuple[Selected, ...]
    breaches: tuple[Breach, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How all tests of an agent went. Files that cannot be used count as failures."""

    agent: str
    results: tuple[Verdict, ...]
    problems: tuple[Problem, ...]

    @property
    def passed(self) -> bool:
        """Tell whether nothing failed."""
        return not self.problems and all(result.passed for result in self.results)


@dataclass(frozen=True, slots=True)
class SavedTest:
    """A test that was written into the agent's folder, and what the file says."""

    test: ContextTest
    text: str
