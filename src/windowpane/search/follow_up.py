"""Tell whether a message goes on with the turn before it.

A message that finds what it needs by itself is not mixed with anything. One that finds little may lean on the turn
before it, or may have nothing to do with it ("Who wrote Hamlet?"). What tells them apart: words that tie it to the
turn, words that both share, how near both are in meaning, and how near the message is by itself to the item that
the turn would bring in.
"""

from collections.abc import Iterable
from math import exp, log1p

import numpy as np

from windowpane.search.base import Measurements, SearchQuery
from windowpane.search.select import calibrated
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


def finds_enough(message: str, alone: Iterable[Measurements]) -> bool:
    """Tell whether a message that was searched for by itself found what it needs."""
    tied = BEGINS_CONNECTED.match(message) is not None or POINTS_BACK.search(message) is not None
    best = max((float(calibrated(found, 0.0).max(initial=0.0)) for found in alone), default=0.0)
    return best >= (TIED_OWN_SCORE if tied else OWN_SCORE)


def repeats(answer: Iterable[Measurements]) -> bool:
    """Tell whether an answer, searched for like a message, repeats an item."""
    return max((_nearest(found) for found in answer), default=-1.0) >= REPEATED


def may_go_on(mixed: SearchQuery, nearness: float | None, alone: Iterable[Measurements]) -> bool:
    """Tell whether a message can be a follow-up, whatever it finds when the turn before it is mixed in.

    Where it cannot, `goes_on` would say the same, and the turn need not be embedded with it.
    """
    nearest = [float(np.nan_to_num(found.meaning).max()) for found in alone if not found.by_words_alone]
    return _is_likely(mixed, nearness, max(nearest, default=None))


def goes_on(
    mixed: SearchQuery, nearness: float | None, alone: Iterable[Measurements], together: Iterable[Measurements]
) -> bool:
    """Tell whether a message is a follow-up.

    `nearness` is the cosine between the message and what was said last, None where it was not measured. `alone` and
    `together` are the measurements of the message by itself and mixed with the turn before it.
    """
    return _is_likely(mixed, nearness, _toward(mixed.context_share, tuple(alone), tuple(together)))


def _is_likely(mixed: SearchQuery, nearness: float | None, toward: float | None) -> bool:
    if mixed.named:
        return True
    own, other = content_words(mixed.message), content_words(mixed.earlier)
    count = log1p(len(mixed.message.split()))
    shared = len(own & other) / (len(own) + 1)
    connected = BEGINS_CONNECTED.match(mixed.message) is not None
    pointing = POINTS_BACK.search(mixed.message) is not None
    if nearness is None or toward is None:
        evidence = _WORDS_BASE + _WORDS_PER_LOG_WORD * count + _WORDS_PER_SHARED * shared
        evidence += _WORDS_CONNECTED * connected + _WORDS_POINTING * pointing
    else:
        evidence = _BASE + _PER_LOG_WORD * count + _CONNECTED * connected + _POINTING * pointing
        evidence += _PER_SHARED * shared + _PER_NEARNESS * nearness + _PER_TOWARD * toward
    return 1 / (1 + exp(-evidence)) >= LIKELY


def _toward(share: float, alone: tuple[Measurements, ...], together: tuple[Measurements, ...]) -> float | None:
    """Return how near a message is by itself to the item that comes first when the turn before it is mixed in."""
    best, nearness = -1.0, None
    for own, mixed in zip(alone, together, strict=True):
        scores = calibrated(mixed, share)
        if len(scores) and not own.by_words_alone and scores.max() > best:
            best, nearness = float(scores.max()), float(np.nan_to_num(own.meaning[int(np.argmax(scores))]))
    return nearness


def _nearest(found: Measurements) -> float:
    return -1.0 if found.by_words_alone else float(np.nanmax(found.meaning, initial=-1.0))
