"""How well a selection does on labelled questions, and which settings would do better."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.context.items import Domain, ItemRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How well a selection did. Shares are None where there was nothing to count.

    `precision` is the share of the selected that was needed, `recall` the share of the needed that was selected, `f1`
    their harmonic mean; `mean_selected` is for one question. What was needed and no candidate counts as not selected.
    """

    questions: int
    needed: int
    selected: int
    hits: int
    precision: float | None
    recall: float | None
    f1: float | None
    mean_selected: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationStep:
    """Candidates whose score was from `low` up to `low` + 0.1, and what share of them was needed."""

    low: float
    candidates: int
    needed: int
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A question that the selection got wrong: what it took without need, and what it should have taken."""

    name: str
    needless: tuple[ItemRef, ...]
    missed: tuple[ItemRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """How an agent's selection does with its settings: on all questions, on each domain, and by score."""

    agent: str
    search: Mapping[str, Any]
    whole: Measure
    by_domain: Mapping[Domain, Measure]
    calibration: tuple[CalibrationStep, ...]
    wrong: tuple[Wrong, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What would be better for one domain. `before` and `after` are measured on questions held out, `fitted` on all.

    `better` tells whether it is worth changing anything; `changes` are the settings that differ.
    """

    domain: Domain
    settings: Mapping[str, Any]
    changes: Mapping[str, Any]
    before: Measure
    after: Measure
    fitted: Measure
    folds: int
    better: bool


@dataclass(frozen=True, slots=True)
class Tuning:
    """What would be better, for rules and references and for tools. Nothing is changed by it."""

    proposals: tuple[Proposal, ...]
