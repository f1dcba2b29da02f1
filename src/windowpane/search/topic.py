"""Tell whether a message begins a new subject.

It looks at words alone, so it costs nothing and works without a model: a message that shares words with the last two
turns, answers a question or points back goes on; one that asks something without doing so begins a new topic.
"""

import re
from collections.abc import Sequence
from math import exp, log1p

from windowpane.search.words import words

# Fitted on the training part of one public set of small talk and one half of another of errands (docs/lab-notes.md).
_BASE = -3.1
_PER_LOG_WORD = 0.66
_PER_SHARE_OF_LAST = -3.0
_PER_SHARE_OF_LAST_BUT_ONE = -2.4
_QUESTION = 0.5
_AFTER_A_QUESTION = -0.7
_CONNECTIVE = 0.5
_POINTING = -0.3
_ASKING = 1.45

BEGINS_CONNECTED = re.compile(
    r"\s*(?:(?:and|but|so|or|then|also|what about|how about|what if|yes|yeah|yep|no|nope|ok|okay|sure|great|good|fine"
    r"|nice|right|correct|exactly|thanks|thank|that|it|i'd like|perfect|alright|sounds|actually|in that case|now)\b"
    r"|(?:why|how|when|where|who|how come|which one)(?: (?:not|so|that|is that))?\W*$)",
    re.IGNORECASE,
)
POINTS_BACK = re.compile(
    r"\b(it|its|that|this|these|those|them|they|there|one|ones|same|he|she|him|her|instead|else|another|other|again"
    r"|above|previous|more)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\b(do|are|have|can|could) you\b|\bwhat('s| is| are| do)\b|\bwhere\b|\bi (need|want|would like|am looking)\b",
    re.IGNORECASE,
)
_COMMON = frozenset(
    re.findall(
        r"\S+",
        """and for are that this the have has had was were not but with your you what how they she too just like really
        would yes can will from""",
    )
)


def new_topic(message: str, before: Sequence[str]) -> float:
    """Return between 0 and 1 how likely a message begins a new subject; `before` are the turns so far, oldest first."""
    if not before:
        return 1.0
    own = content_words(message)
    evidence = (
        _BASE
        + _PER_LOG_WORD * log1p(len(message.split()))
        + _PER_SHARE_OF_LAST * _shared(own, before[-1])
        + _PER_SHARE_OF_LAST_BUT_ONE * (_shared(own, before[-2]) if len(before) > 1 else 0.0)
        + _QUESTION * ("?" in message)
        + _AFTER_A_QUESTION * before[-1].rstrip().endswith("?")
        + _CONNECTIVE * (BEGINS_CONNECTED.match(message) is not None)
        + _POINTING * (POINTS_BACK.search(message) is not None)
        + _ASKING * (_ASKS.search(message) is not None)
    )
    return 1 / (1 + exp(-evidence))


def _shared(own: frozenset[str], other: str) -> float:
    return len(own & content_words(other)) / (len(own) + 1)


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that say what a text is about."""
    return frozenset([word for word in words(text) if len(word) > 2]) - _COMMON
