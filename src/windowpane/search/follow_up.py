"""Tell whether a message goes on with the turn before it.

A message that finds what it needs by itself is not mixed with anything. One that finds little may lean on the turn
before it, or may have nothing to do with it ("Who wrote Hamlet?"). What tells them apart: words that tie it to the
turn, words that both share, how near both are in meaning, and how near the message is by itself to the item that
the turn would bring in.
"""

from collections.abc import Iterable, Sequence
from math import exp, log1p
from typing import NamedTuple

import numpy as np

from windowpane.search.base import Floats, Measurements, SearchQuery
from windowpane.search.topic import BEGINS_CONNECTED, POINTS_BACK, content_words

OWN_SCORE = 0.85
"""A message whose best item scores this much by itself is searched for by itself."""

TIED_OWN_SCORE = 0.95
"""The same for a message with a word that ties it to the turn before ("the new one"): it may mean something else."""

LIKELY = 0.25
"""From here on a message that finds little by itself is taken for a follow-up."""

REPEATED = 0.85
"""An answer this near to an item repeats it: it says what was selected before, not what the user is after."""

# Rounded from a logistic regression over the turns of three public sets of dialogues and one of ours: where mixing in
# the turn before helps, against where it harms and against general requests after the same turns (docs/lab-notes.md).
_BASE = -0.3
_PER_LOG_WORD = -1.2
_CONNECTED = 2.2
_POINTING = 1.2
_PER_SHARED = 2.7
_PER_NEARNESS = 5.3
_PER_TOWARD = 5.4

# The same where no meaning was measured.
_WORDS_BASE = -0.6
_WORDS_PER_LOG_WORD = -0.3
_WORDS_CONNECTED = 2.6
_WORDS_POINTING = 1.1
_WORDS_PER_SHARED = 8.3


def finds_enough(message: str, scores: Iterable[Floats]) -> bool:
    """Tell whether a message that was searched for by itself found what it needs; `scores` are those of each domain."""
    best = max((float(found.max(initial=0.0)) for found in scores), default=0.0)
    return best >= (TIED_OWN_SCORE if is_tied(message) else OWN_SCORE)


def is_tied(message: str) -> bool:
    """Tell whether a message has a word that ties it to the turn before ("And the second one?")."""
    return BEGINS_CONNECTED.match(message) is not None or POINTS_BACK.search(message) is not None


def repeats(answer: Iterable[Floats]) -> bool:
    """Tell whether an answer repeats an item; given how near it is to all of them in meaning, for each domain."""
    # A number that was not measured counts for nothing here.
    return max((float(np.fmax.reduce(near, initial=-1.0)) for near in answer), default=-1.0) >= REPEATED


class Ties(NamedTuple):
    """What ties a message to the turn before it by its words: see `ties`."""

    named: bool
    log_words: float
    shared: float
    connected: bool
    pointing: bool


def ties(mixed: SearchQuery) -> Ties:
    """Return what ties a message to the turn that is mixed in."""
    own, other = content_words(mixed.message), content_words(mixed.earlier)
    return Ties(
        named=bool(mixed.named),
        log_words=log1p(len(mixed.message.split())),
        shared=len(own & other) / (len(own) + 1),
        connected=BEGINS_CONNECTED.match(mixed.message) is not None,
        pointing=POINTS_BACK.search(mixed.message) is not None,
    )


def may_go_on(tied: Ties, nearness: float | None, alone: Iterable[Measurements]) -> bool:
    """Tell whether a message can be a follow-up, whatever it finds when the turn before it is mixed in.

    Where it cannot, `goes_on` would say the same, and the turn need not be embedded with it.
    """
    nearest = [_known(found.meaning).max() for found in alone if not found.by_words_alone]
    return _is_likely(tied, nearness, float(max(nearest)) if nearest else None)


def goes_on(tied: Ties, nearness: float | None, alone: Iterable[Measurements], together: Iterable[Floats]) -> bool:
    """Tell whether a message is a follow-up.

    `nearness` is the cosine between the message and what was said last, None where it was not measured. `alone` are
    the measurements of the message by itself, `together` the scores when it is mixed with the turn before it.
    """
    return _is_likely(tied, nearness, _toward(tuple(alone), tuple(together)))


def _is_likely(tied: Ties, nearness: float | None, toward: float | None) -> bool:
    named, count, shared, connected, pointing = tied
    if named:
        return True
    if nearness is None or toward is None:
        evidence = _WORDS_BASE + _WORDS_PER_LOG_WORD * count + _WORDS_PER_SHARED * shared
        evidence += _WORDS_CONNECTED * connected + _WORDS_POINTING * pointing
    else:
        evidence = _BASE + _PER_LOG_WORD * count + _CONNECTED * connected + _POINTING * pointing
        evidence += _PER_SHARED * shared + _PER_NEARNESS * nearness + _PER_TOWARD * toward
    return 1 / (1 + exp(-evidence)) >= LIKELY


def _toward(alone: Sequence[Measurements], together: Sequence[Floats]) -> float | None:
    """Return how near a message is by itself to the item that comes first when the turn before it is mixed in."""
    best, nearness = -1.0, None
    for own, scores in zip(alone, together, strict=True):
        if len(scores) and not own.by_words_alone and scores.max() > best:
            first = int(scores.argmax())
            best, nearness = float(scores[first]), float(_known(own.meaning)[first])
    return nearness


def _known(meaning: Floats) -> Floats:
    """Return meaning as it was measured, and as none where it was not."""
    unknown = np.isnan(meaning)
    return np.where(unknown, 0.0, meaning) if unknown.any() else meaning
