"""Choose the few items that a message needs, and say for each why or why not.

Meaning and words are put on one scale, as distances from the other candidates, and
added: that is the order. From the nearest meaning, the most words and the number of candidates
comes the score of the first, between 0 and 1: roughly the chance that it is needed, so that 0.4
means the same for every query and every pool. The others score less, the further they are behind; tools
lose less than texts, because a missing tool costs the task and a spare one a few tokens. An item is taken
when its score reaches the cut-off. The cut-off is a share of the best score and never below the floor:
a clear winner stands alone, equals come together, and where nothing is relevant nothing
is taken. At most `top_n` are taken, except that whatever reaches `include_score` always is.

Nothing here looks at anything but its arguments. Sums are made of whole numbers and
scores are rounded, so the same measurements give the same choice, bit for bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import repeat
from math import isnan, log
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import ItemRef
from windowpane.context.request import CandidateColumns, Passage
from windowpane.search.base import Measurements, SearchQuery
from windowpane.search.settings import SelectSettings

Code = Literal["include_score", "relevant", "below_floor", "below_cut_off", "beyond_top_n", "small_talk", "off"]
"""Why an item was taken (the first two) or left out."""

Floats = NDArray[np.float64]

MEANING_SHARE = 0.7
"""How much of the order is meaning; the rest is words."""

SCORE_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of the evidence.

    The first three put the candidates of a query in order: nearer, more words, less far behind the best. The next five
    say how likely the first is needed, as in a logistic regression: the nearest meaning, the most words, the logarithm
    of the number of candidates (among many, something is always near), and the share of context: a follow-up is
    likelier to need something than a first message. `behind_text` and `behind_tools` are what a step behind the first
    takes away. A tool that is far behind, and not of the first one's server, also loses what the first has in certainty
    above `certain`: all of it at `far` steps. That another tool fits well says nothing for this one. Where no tool is
    `near` in meaning and none has `clear` words, all of them lose `doubt`: so weak a likeness is found for any message.
    (Not for a follow-up, which says little itself.) The last three are used where no meaning was measured.
    """

    order_meaning: float
    order_words: float
    order_gap: float
    base: float
    per_meaning: float
    per_words: float
    per_log_count: float
    per_context: float
    behind_text: float
    behind_tools: float
    certain: float
    far: float
    near: float
    clear: float
    doubt: float
    words_base: float
    words_per_words: float
    words_per_gap: float


# Printed by `python bench/selection_quality.py --fit`, but for the order and for what being behind takes away: those
# were chosen by hand (docs/lab-notes.md).
CALIBRATION = Calibration(
    order_meaning=4.52,
    order_words=4.47,
    order_gap=-1.54,
    base=-2.85,
    per_meaning=7.06,
    per_words=6.48,
    per_log_count=-0.52,
    per_context=1.16,
    behind_text=0.72,
    behind_tools=0.35,
    certain=0.0,
    far=8.0,
    near=0.25,
    clear=0.31,
    doubt=3.0,
    words_base=-3.98,
    words_per_words=8.83,
    words_per_gap=-1.2,
)

DOUBT_GROWS = 0.02
"""How far below `near` and `clear` the whole of `doubt` is reached: a score never jumps."""

FEWEST = 10
"""Fewer candidates are judged like so many: there is no telling from two or three what is usual."""

COMPANION = 0.3
"""How much nearer in the order a tool comes when the first is of its server: tools are often used together."""

FEW = 1_000
"""So many candidates are all put in order in the time that it takes to find the best of them."""

# What candidates usually look like. With few of them this steadies the scale; with hundreds it vanishes.
_USUAL_COUNT = 10
_USUAL_MEANING = (0.12, 0.10)
_USUAL_WORDS = (0.05, 0.10)


class Decision(NamedTuple):
    """What was decided about one candidate, with everything that decided it. `rank` counts from 1."""

    key: ItemRef
    kept: bool
    code: Code
    reason: str
    score: float
    meaning: float | None
    words: float
    rank: int
    cut_off: float
    floor: float
    passage: Passage | None


@dataclass(frozen=True)
class DomainSelection:
    """The decision about every candidate of one domain, best first.

    What is taken comes first in that order. A caller that reads only `kept` does not wait for very many others to be
    put in order.
    """

    measured: Measurements
    settings: SelectSettings
    query: SearchQuery
    unordered: Floats
    cut_off: float
    floor: float

    def __len__(self) -> int:
        return len(self.unordered)

    def __iter__(self) -> Iterator[Decision]:
        return self._choices(self._order)

    @cached_property
    def kept(self) -> tuple[Decision, ...]:
        """Return the choices that were taken."""
        return tuple(choice for choice in self._choices(self._front()) if choice.kept)

    @property
    def left_out(self) -> CandidateColumns:
        """Return the choices that were not taken, in columns: by score, and by name where that is the same."""
        measured, taken = self.measured, len(self.kept)
        left = self._order[taken:]
        if not len(left):
            return CandidateColumns([], [], [], [])
        by_name = np.lexsort((measured.name_ranks[left], -self.unordered[left]))
        left = left[by_name]
        positions: list[int] = left.tolist()
        ranks: list[int | None] = (by_name + (taken + 1)).tolist()
        passages: list[Passage | None] = [None] * len(left)
        shown: list[int] = np.flatnonzero(by_name < self.settings.top_k - taken).tolist()
        for at in shown:
            passages[at] = measured.passage(positions[at])
        keys = [measured.keys[position] for position in positions]
        codes, reasons = self._why_not(by_name + (taken + 1), self.unordered[left])
        return CandidateColumns(
            type=[key.type for key in keys],
            name=[key.name for key in keys],
            code=codes,
            reason=reasons,
            server=[key.server for key in keys] if measured.domain == "tool" else None,
            score=self.unordered[left].tolist(),
            meaning=_without_nan(measured.meaning[left]),
            words=measured.words[left].tolist(),
            rank=ranks,
            passage=passages if shown else None,
            cut_off=list(repeat(self.cut_off, len(left))),
            floor=list(repeat(self.floor, len(left))),
        )

    @property
    def taken(self) -> tuple[tuple[ItemRef, float], ...]:
        """Return what was taken, with its score and nothing else."""
        front: list[int] = self._front().tolist()
        found = ((rank, position, float(self.unordered[position])) for rank, position in enumerate(front, 1))
        return tuple(
            (self.measured.keys[position], score)
            for rank, position, score in found
            if self._code(rank, score) in ("include_score", "relevant")
        )

    @property
    def order(self) -> tuple[int, ...]:
        """Return the positions of all candidates, best first."""
        return tuple(self._order.tolist())

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return self._ordered(np.arange(len(self)))

    def _front(self) -> NDArray[np.intp]:
        """Return the positions of the best, as many as could be taken."""
        wanted = max(np.count_nonzero(self.unordered >= self.settings.include_score), self.settings.top_n)
        if len(self) <= FEW or not wanted:
            return self._order[:wanted]
        lowest = min(self.floor, self.settings.include_score)
        least = np.partition(self.unordered, -wanted)[-wanted] if wanted < len(self) else -1.0
        return self._ordered(np.flatnonzero(self.unordered >= max(least, lowest)))[:wanted]

    def _ordered(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        # Equal scores are ordered by meaning, then by name: the order of the input plays no part.
        near = self.measured.meaning[positions]
        far = np.where(np.isnan(near), 1.0, -near)
        return positions[np.lexsort((self.measured.name_ranks[positions], far, -self.unordered[positions]))]

    def _code(self, rank: int, score: float) -> Code:
        if not self.settings.enabled:
            return "off"
        if score >= self.settings.include_score:
            return "include_score"
        if self.query.small_talk:
            return "small_talk"
        if score < self.floor:
            return "below_floor"
        if score < self.cut_off:
            return "below_cut_off"
        return "relevant" if rank <= self.settings.top_n else "beyond_top_n"

    def _choices(self, chosen: NDArray[np.intp]) -> Iterator[Decision]:
        """Yield what was decided about these candidates, the first of which is the best."""
        measured = self.measured
        # Whole columns at once: to take one number out of an array costs more than all that is done with it.
        positions: list[int] = chosen.tolist()
        scores: list[float] = self.unordered[chosen].tolist()
        meanings: list[float] = measured.meaning[chosen].tolist()
        shares: list[float] = measured.words[chosen].tolist()
        rows = zip(positions, scores, meanings, shares, strict=True)
        keys, cut_off, floor, top_k = measured.keys, self.cut_off, self.floor, self.settings.top_k
        for rank, (position, score, meaning, words) in enumerate(rows, 1):
            code = self._code(rank, score)
            kept = code in ("include_score", "relevant")
            reason, near = self._reason(code, rank, score), None if isnan(meaning) else meaning
            passage = measured.passage(position) if kept or rank <= top_k else None
            # In the order of the fields: by their names it takes twice as long, and there may be ten thousand.
            yield Decision(keys[position], kept, code, reason, score, near, words, rank, cut_off, floor, passage)

    def _why_not(self, ranks: NDArray[np.intp], scores: Floats) -> tuple[list[str], list[str]]:
        """Return the codes and the reasons of what was not taken, the best score first."""
        count = len(scores)
        if not self.settings.enabled or self.query.small_talk:
            same: Code = "small_talk" if self.settings.enabled else "off"
            return [same] * count, [self._reason(same, 0, 0.0)] * count
        codes: list[str] = []
        reasons: list[str] = []
        near = np.count_nonzero(scores >= self.floor)
        for rank, score in zip(ranks[:near].tolist(), scores[:near].tolist(), strict=True):
            code = self._code(rank, score)
            codes.append(code)
            reasons.append(self._reason(code, rank, score))
        # As a rule nearly all are below the floor.
        below: list[float] = scores[near:].tolist()
        weak = {score: _weak(score, self.floor) for score in set(below)}
        return codes + ["below_floor"] * len(below), reasons + [weak[score] for score in below]

    def _reason(self, code: Code, rank: int, score: float) -> str:
        settings = self.settings
        match code:
            case "include_score":
                return f"strong match: {score:.2f} ({settings.include_score:.2f} or more is always included)"
            case "relevant":
                return f"good match: {score:.2f} (minimum {self.cut_off:.2f}), number {rank} of {len(self)}"
            case "below_floor":
                return _weak(score, self.floor)
            case "below_cut_off":
                share = f"{settings.share_of_best:.0%} of the best"
                return f"weaker than the best: {score:.2f} (minimum {self.cut_off:.2f}, {share})"
            case "beyond_top_n":
                return f"number {rank} of {len(self)} (at most {settings.top_n})"
            case "small_talk":
                return self.query.reason
            case "off":
                return "selection is off"


# Remembered: there are ten thousand scores, and many candidates to be told theirs.
@lru_cache(maxsize=20_000)
def _weak(score: float, floor: float) -> str:
    return f"weak match: {score:.2f} (minimum {floor:.2f})"


def _without_nan(values: Floats) -> list[float | None] | None:
    """Return numbers with None where one is missing; None where all are."""
    missing = np.isnan(values)
    if not missing.any():
        return values.tolist()
    return None if missing.all() else [None if isnan(value) else value for value in values.tolist()]


def select(
    measured: Measurements, query: SearchQuery, settings: SelectSettings, calibration: Calibration = CALIBRATION
) -> DomainSelection:
    """Decide about every candidate of one domain."""
    return decide(measured, calibrated(measured, query.context_share, calibration), query, settings)


def decide(measured: Measurements, scores: Floats, query: SearchQuery, settings: SelectSettings) -> DomainSelection:
    """Decide about every candidate by its score, in the order they were measured."""
    best = float(scores.max()) if len(scores) else 0.0
    cut_off = round(max(settings.floor, settings.share_of_best * best), SCORE_DECIMALS)
    return DomainSelection(measured, settings, query, scores, cut_off, settings.floor)


def calibrated(measured: Measurements, context_share: float, calibration: Calibration = CALIBRATION) -> Floats:
    """Return the score of every candidate, between 0 and 1, in the order they were measured."""
    if not len(measured.keys):
        return np.zeros(0)
    meaning, words, gap = _evidence(measured)
    weights = calibration
    if meaning is None:
        return _chance(weights.words_base + weights.words_per_words * words + weights.words_per_gap * gap)
    order = weights.order_meaning * meaning + weights.order_words * words + weights.order_gap * gap
    nearest, most_words = meaning.max(), words.max()
    need = (
        weights.base
        + weights.per_meaning * nearest
        + weights.per_words * most_words
        + weights.per_log_count * log(max(len(meaning), FEWEST))
        + weights.per_context * context_share
    )
    if measured.domain != "tool":
        return _chance(need - weights.behind_text * (order.max() - order))
    companions = _companions(measured, order)
    order = order + COMPANION * companions
    steps = order.max() - order
    if not context_share:
        need -= weights.doubt * _below(weights.near, nearest) * _below(weights.clear, most_words)
    spare = np.where(companions, 0.0, max(need - weights.certain, 0.0) * np.minimum(steps / weights.far, 1.0))
    return _chance(need - weights.behind_tools * steps - spare)


def _below(limit: float, value: float) -> float:
    """Return between 0 and 1 how clearly a value is below a limit."""
    return min(max((limit - value) / DOUBT_GROWS, 0.0), 1.0)


def _companions(measured: Measurements, order: Floats) -> NDArray[np.bool_]:
    """Return which tools are of the server that has the first of them."""
    servers = {measured.keys[position].server for position in np.flatnonzero(order == order.max())} - {None, ""}
    return np.array([key.server in servers for key in measured.keys], bool)


def evidence(measured: Measurements) -> Floats:
    """Return what the score is made of, one row for each candidate.

    The columns are meaning, words and how far behind the best; where no meaning was measured at all, only words and how
    far behind.
    """
    return np.column_stack([column for column in _evidence(measured) if column is not None])


def _evidence(measured: Measurements) -> tuple[Floats | None, Floats, Floats]:
    words, meaning = measured.words, measured.meaning
    from_words, _, _ = _standardised(words, *_USUAL_WORDS)
    unknown = np.isnan(meaning)
    if not unknown.any():
        distance, _, _ = _standardised(meaning, *_USUAL_MEANING)
    elif unknown.all():
        return None, words, from_words.max() - from_words
    else:
        known = ~unknown
        from_meaning, mean, spread = _standardised(meaning[known], *_USUAL_MEANING)
        # Where meaning was not measured, the words say how near the item would probably be.
        meaning = np.where(known, meaning, mean + spread * from_words)
        distance = from_words.copy()
        distance[known] = from_meaning
    fused = MEANING_SHARE * distance + (1 - MEANING_SHARE) * from_words
    return meaning, words, fused.max() - fused


_WHOLE = 1_000_000


def _standardised(values: Floats, usual_mean: float, usual_spread: float) -> tuple[Floats, float, float]:
    """Return how far each value is from the others, with the mean and the spread that were used."""
    whole = np.rint(values * _WHOLE).astype(np.int64)
    count = len(values)
    total, squares = int(whole.sum()), int(whole @ whole)
    weight = count + _USUAL_COUNT
    mean = (total / _WHOLE + _USUAL_COUNT * usual_mean) / weight
    variance = (count * squares - total * total) / (count * count) / (_WHOLE * _WHOLE)
    spread = ((count * variance + _USUAL_COUNT * usual_spread**2) / weight) ** 0.5
    return (values - mean) / spread, mean, spread


def _chance(evidence: Floats) -> Floats:
    return (1 / (1 + np.exp(-evidence))).round(SCORE_DECIMALS)
