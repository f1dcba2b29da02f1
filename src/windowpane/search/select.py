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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, log
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import ItemRef
from windowpane.context.request import Passage
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

    A caller that reads only `kept` does not wait for all the others to be put in order.
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
        return self._choices(self.order)

    @property
    def kept(self) -> tuple[Decision, ...]:
        """Return the choices that were taken."""
        return tuple(choice for choice in self._choices(self._front()) if choice.kept)

    @property
    def taken(self) -> tuple[tuple[ItemRef, float], ...]:
        """Return what was taken, with its score and nothing else."""
        found = ((rank, position, float(self.unordered[position])) for rank, position in enumerate(self._front(), 1))
        return tuple(
            (self.measured.keys[position], score)
            for rank, position, score in found
            if self._code(rank, score) in ("include_score", "relevant")
        )

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Return the positions of all candidates, best first."""
        return tuple(self._ordered(np.arange(len(self))))

    def _front(self) -> list[int]:
        """Return the positions of the best, as many as could be taken."""
        certain = int((self.unordered >= self.settings.include_score).sum())
        wanted = max(certain, self.settings.top_n)
        if wanted == 0 or not len(self):
            return []
        lowest = min(self.floor, self.settings.include_score)
        least = np.partition(self.unordered, -wanted)[-wanted] if wanted < len(self) else -1.0
        return self._ordered(np.flatnonzero(self.unordered >= max(least, lowest)))[:wanted]

    def _ordered(self, positions: NDArray[np.intp]) -> list[int]:
        # Equal scores are ordered by meaning, then by name: the order of the input plays no part.
        nearest = np.nan_to_num(self.measured.meaning[positions], nan=-1.0)
        keys = (self.measured.name_ranks[positions], -nearest, -self.unordered[positions])
        return positions[np.lexsort(keys)].tolist()

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

    def _choices(self, positions: Sequence[int]) -> Iterator[Decision]:
        """Yield what was decided about these candidates, the first of which is the best."""
        measured, chosen = self.measured, np.array(positions, np.intp)
        # Whole columns at once: to take one number out of an array costs more than all that is done with it.
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

    def _reason(self, code: Code, rank: int, score: float) -> str:
        settings = self.settings
        match code:
            case "include_score":
                return f"strong match: {score:.2f} ({settings.include_score:.2f} or more is always included)"
            case "relevant":
                return f"good match: {score:.2f} (minimum {self.cut_off:.2f}), number {rank} of {len(self)}"
            case "below_floor":
                return f"weak match: {score:.2f} (minimum {self.floor:.2f})"
            case "below_cut_off":
                share = f"{settings.share_of_best:.0%} of the best"
                return f"weaker than the best: {score:.2f} (minimum {self.cut_off:.2f}, {share})"
            case "beyond_top_n":
                return f"number {rank} of {len(self)} (at most {settings.top_n})"
            case "small_talk":
                return self.query.reason
            case "off":
                return "selection is off"


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
    features = evidence(measured)
    weights = calibration
    if features.shape[1] == 2:
        words, gap = features.T
        return _chance(weights.words_base + weights.words_per_words * words + weights.words_per_gap * gap)
    meaning, words, gap = features.T
    order = weights.order_meaning * meaning + weights.order_words * words + weights.order_gap * gap
    tools = measured.domain == "tool"
    companions = _companions(measured, order) if tools else np.zeros(len(order), bool)
    order = order + COMPANION * companions
    need = (
        weights.base
        + weights.per_meaning * meaning.max()
        + weights.per_words * words.max()
        + weights.per_log_count * log(max(len(meaning), FEWEST))
        + weights.per_context * context_share
    )
    steps = order.max() - order
    if not tools:
        return _chance(need - weights.behind_text * steps)
    if not context_share:
        need -= weights.doubt * _below(weights.near, meaning.max()) * _below(weights.clear, words.max())
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
    words = measured.words
    from_words, _, _ = _standardised(words, *_USUAL_WORDS)
    known = ~np.isnan(measured.meaning)
    if not known.any():
        return np.column_stack([words, from_words.max() - from_words])
    from_meaning, mean, spread = _standardised(measured.meaning[known], *_USUAL_MEANING)
    # Where meaning was not measured, the words say how near the item would probably be.
    meaning = mean + spread * from_words
    meaning[known] = measured.meaning[known]
    distance = from_words.copy()
    distance[known] = from_meaning
    fused = MEANING_SHARE * distance + (1 - MEANING_SHARE) * from_words
    return np.column_stack([meaning, words, fused.max() - fused])


_WHOLE = 1_000_000


def _standardised(values: Floats, usual_mean: float, usual_spread: float) -> tuple[Floats, float, float]:
    """Return how far each value is from the others, with the mean and the spread that were used."""
    whole = np.rint(values * _WHOLE).astype(np.int64)
    count = len(values)
    total, squares = int(whole.sum()), int((whole * whole).sum())
    weight = count + _USUAL_COUNT
    mean = (total / _WHOLE + _USUAL_COUNT * usual_mean) / weight
    variance = (count * squares - total * total) / (count * count) / (_WHOLE * _WHOLE)
    spread = ((count * variance + _USUAL_COUNT * usual_spread**2) / weight) ** 0.5
    return (values - mean) / spread, mean, spread


def _chance(evidence: Floats) -> Floats:
    return np.round(1 / (1 + np.exp(-evidence)), SCORE_DECIMALS)
