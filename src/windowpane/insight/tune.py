"""Find search settings that would have chosen better, and show on questions they were not chosen by that they do.

All combinations of a few values of each setting are tried, for rules and references and for tools apart. What is
promised is measured by cross-validation: the questions are dealt into groups, and each group is judged by the settings
that are best on the others. The proposal itself is what is best on all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import accumulate, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windowpane.agents.base import Agent
from windowpane.agents.edit import ANY, FileText, put_manifest, read_text
from windowpane.agents.rewrite import rewritten_yaml
from windowpane.agents.tree import TreeError
from windowpane.api.evaluation import Measure, Proposal
from windowpane.context.ids import content_hash
from windowpane.context.items import Domain
from windowpane.errors import InvalidFileError, InvalidInputError
from windowpane.insight.evaluate import LabelledQuestion, measured
from windowpane.search.documents import DOMAINS
from windowpane.search.settings import SearchSettings, SelectSettings

FOLDS = 5
FEWEST_QUESTIONS = 10
"""With fewer, nothing that is found would mean anything."""

LEAST_GAIN = 0.01
"""Settings are proposed when they are better by so much, in F1, on held-out questions."""

FLOORS = tuple(step / 20 for step in range(1, 13))
SHARES = tuple(step / 10 for step in range(2, 10))
TOP_NS = (1, 2, 3, 4, 5, 6, 8, 10)
INCLUDE_SCORES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.01)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def tune(questions: Sequence[LabelledQuestion], settings: SearchSettings) -> tuple[Proposal, ...]:
    """Return a proposal for each domain that has enough questions.

    Raises:
        InvalidInputError: none has.
    """
    found = [
        _tuned(domain, own, settings.of(domain))
        for domain in DOMAINS
        if len(own := [question for question in questions if question.domain == domain]) >= FEWEST_QUESTIONS
        and any(any(question.needed) for question in own)
    ]
    if not found:
        raise InvalidInputError(
            f"there are too few labelled questions ({len(questions)}); at least {FEWEST_QUESTIONS} are needed for "
            "rules and references, or for tools"
        )
    return tuple(found)


def write_search(agent: Agent, changes: Mapping[Domain, Mapping[str, Any]]) -> FileText:
    """Write search settings into the agent's `agent.yaml`; everything else in it stays as it is written.

    Raises:
        InvalidInputError: nothing is to be changed.
        InvalidFileError: the file cannot be changed like this.
    """
    values = {
        ("search", _TABLES[domain], name): value for domain, own in changes.items() for name, value in own.items()
    }
    if not values:
        raise InvalidInputError("nothing better was found; the settings stay as they are")
    before = read_text(agent, "agent.yaml")
    try:
        after = rewritten_yaml(before.text, values)
    except TreeError as error:
        raise InvalidFileError(before.file, ((error.line, error.reason),)) from None
    return put_manifest(agent, after, revision=before.revision or ANY)


_TABLES: Mapping[Domain, str] = {"text": "text", "tool": "tools"}


def _tuned(domain: Domain, questions: Sequence[LabelledQuestion], now: SelectSettings) -> Proposal:
    tried = _combinations(now)
    counts = [counts_under(question, tried) for question in questions]
    selected, hits = (np.stack([count[column] for count in counts]) for column in (0, 1))
    needed = np.array([sum(question.needed) + len(question.lost) for question in questions])
    folds = _folds(questions)
    present, chosen_elsewhere = np.zeros(len(questions), np.int64), np.zeros(len(questions), np.int64)
    for fold in range(FOLDS):
        inside = folds == fold
        chosen_elsewhere[inside] = _best(needed[~inside], selected[~inside], hits[~inside])
    before, after = (_sums(needed, selected, hits, places) for places in (present, chosen_elsewhere))
    best = _best(needed, selected, hits)
    chosen = tried[best]
    changes = {name: value for name, value in asdict(chosen).items() if value != getattr(now, name)}
    return Proposal(
        domain=domain,
        settings=asdict(chosen),
        changes=changes,
        before=before,
        after=after,
        fitted=_sums(needed, selected, hits, np.full(len(questions), best, np.int64)),
        folds=len(set(folds.tolist())),
        better=bool(changes) and (after.f1 or 0.0) >= (before.f1 or 0.0) + LEAST_GAIN,
    )


def _sums(needed: Ints, selected: Ints, hits: Ints, places: Ints) -> Measure:
    """Return how well the questions do, each under the settings at its place."""
    each = np.arange(len(needed))
    return measured(len(needed), int(needed.sum()), int(selected[each, places].sum()), int(hits[each, places].sum()))


def _combinations(now: SelectSettings) -> list[SelectSettings]:
    """Return everything that is tried, the present settings first: among equals, the first wins."""
    return [
        now,
        *(
            replace(now, enabled=True, floor=floor, share_of_best=share, top_n=top_n, include_score=include_score)
            for floor, share, top_n, include_score in product(FLOORS, SHARES, TOP_NS, INCLUDE_SCORES)
        ),
    ]


def counts_under(question: LabelledQuestion, tried: Sequence[SelectSettings]) -> tuple[Ints, Ints]:
    """Return how many are selected under each of the settings, and how many of them are needed."""
    ascending = np.array(question.scores[::-1], np.float64)
    count = len(ascending)
    floors = np.array([settings.floor for settings in tried], np.float64)
    shares = np.array([settings.share_of_best for settings in tried], np.float64)
    best = float(ascending[-1]) if count else 0.0
    cut_offs = np.maximum(floors, np.round(np.maximum(floors, shares * best), 4))
    relevant = _at_least(ascending, cut_offs)
    certain = _at_least(ascending, np.array([settings.include_score for settings in tried], np.float64))
    top_ns = np.array([0 if question.small_talk else settings.top_n for settings in tried], np.int64)
    enabled = np.array([settings.enabled for settings in tried], np.int64)
    taken = enabled * np.maximum(certain, np.minimum(relevant, top_ns))
    needed, free = (np.array([0, *accumulate(marks)], np.int64) for marks in (question.needed, question.free))
    return taken - free[taken], needed[taken]


def _at_least(ascending: Floats, limits: Floats) -> Ints:
    """Return how many of the scores reach each limit."""
    return len(ascending) - np.searchsorted(ascending, limits).astype(np.int64)


def _folds(questions: Sequence[LabelledQuestion]) -> Ints:
    """Deal questions into groups by their names: the same questions are always dealt alike."""
    order = sorted(range(len(questions)), key=lambda place: content_hash(questions[place].name))
    folds = np.zeros(len(questions), np.int64)
    folds[order] = np.arange(len(questions)) % FOLDS
    return folds


def _best(needed: Ints, selected: Ints, hits: Ints) -> int:
    """Return which of the settings has the highest F1; among equals the one that selects least, then the first."""
    taken, found = selected.sum(axis=0), hits.sum(axis=0)
    f1 = 2 * found / np.maximum(taken + needed.sum(), 1)
    best = np.flatnonzero(f1 >= f1.max() - 1e-12)
    return 0 if 0 in best else int(best[np.argmin(taken[best])])
