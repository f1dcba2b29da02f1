"""Tell what the user said differently later.

A statement is changed when a later one speaks of the same and

- says so ("I changed my mind about …", "moved to", "rather than", "no longer"), or
- denies it ("don't ship it to the office"), or
- gives another value of the same kind: another number, date or name in the same frame ("I weigh 82 kg", "I weigh
  79 kg").

The rules look at words alone, so the same messages always give the same answer. They pass over what they cannot tell:
a mark that is missing costs little, because what was said later also stands later.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from windowpane.context.messages import UserMessage
from windowpane.memory.hard_parts import hard_kinds
from windowpane.search.words import words

LONGEST_TEXT = 2_000
MOST_STATEMENTS = 60
"""Longer messages, and those of more sentences, are pasted data and state no change."""

LEAST_SHARED = 1 / 3
"""What share of a statement's words a later one must have that says that it changes something."""

HALF_SHARED = 1 / 2
MOST_SHARED = 0.6
"""The same where it only hints at a change, and where it denies the earlier one."""

FEWEST_DENIED_WORDS = 2
"""How many words both must have at least where the later one denies the earlier one."""

FEWEST_FRAME_WORDS = 2
"""How many words beside its value a statement needs for a later one with more words to be about the same."""


def changed_by(message: UserMessage, later: Sequence[UserMessage]) -> UserMessage | None:
    """Return the last of these later messages that changes what a message says, or None."""
    said = _statements(message.content)
    for other in reversed(later) if said else ():
        if _changes(said, _statements(other.content)):
            return other
    return None


def states(text: str) -> bool:
    """Tell whether a text states anything that could be changed. Questions do not."""
    return bool(_statements(text))


def changes(text: str, later: str) -> bool:
    """Tell whether a later text changes what a text says."""
    return _changes(_statements(text), _statements(later))


def _changes(said: Sequence["_Statement"], later: Sequence["_Statement"]) -> bool:
    for second in later:
        for first in said:
            if _changed(first, second):
                return True
    return False


def _changed(first: "_Statement", second: "_Statement") -> bool:
    shared = first.words & second.words
    if not shared or first.plain == second.plain:
        return False
    if not shared.difference(first.value_words, second.value_words, second.cue_words):
        return False
    share = len(shared - second.cue_words) / len(first.words)
    if second.announces and share >= LEAST_SHARED and second.words - first.words:
        return True
    if second.replaced & first.words:
        return True
    denied = (second.denied & shared) if not first.denied else (first.denied & shared) - second.denied
    if denied and share >= MOST_SHARED:
        beside_values = shared.difference(first.value_words, second.value_words)
        if len(beside_values) >= FEWEST_DENIED_WORDS:
            return True
    if not _other_value(first, second):
        return False
    if second.hints and share >= HALF_SHARED:
        return True
    frame, other = first.words - first.value_words, second.words - second.value_words
    same_frame = frame == other or (len(frame) >= FEWEST_FRAME_WORDS and frame <= other)
    return bool(frame) and same_frame and _comparable(first, second)


def _other_value(first: "_Statement", second: "_Statement") -> bool:
    """Tell whether the later statement has a value of the same kind that the earlier one has not, and lacks its own."""
    return any(not first.values[kind] & second.values[kind] for kind in first.values.keys() & second.values.keys())


def _comparable(first: "_Statement", second: "_Statement") -> bool:
    """Tell whether two values exclude each other: numbers and dates do, names only where something *is* one."""
    kinds = first.values.keys() & second.values.keys()
    return bool(kinds - {"name"}) or (first.stative and second.stative)


@dataclass(frozen=True, slots=True)
class _Statement:
    plain: str
    words: frozenset[str]
    value_words: frozenset[str]
    values: dict[str, frozenset[str]]
    denied: frozenset[str]
    announces: bool
    cue_words: frozenset[str]
    replaced: frozenset[str]
    hints: bool
    stative: bool


_SENTENCE_END = re.compile(r"(?<!\b[DM]r\.)(?<!\bM[rs]s\.)(?<!\bSt\.)(?<=[.!?;])[\"')\]]*\s+|\n+")
_ANNOUNCES = re.compile(
    r"""(?P<kept>(?:\b(?:not|never|cannot)|n['’]t)\s+(?:\w+\s+)?)?\b(?P<cue>
      chang(?:e|ed|ing)\ (?:my|our|his|her|their)\ minds?|on\ second\ thoughts?|correction|my\ mistake|i\ was\ wrong
    | (?:no|not?\ any)\ longer|any\ ?more
    | switch(?:ed|ing)?|(?:re)?mov(?:ed|ing)|chang(?:ed?|ing)|replac(?:ed?|ing)|renam(?:ed?|ing)|postponed?|resched\w+
    | re-?booked|cancel(?:l?ed|l?ing)?|g[ai]ve(?:s|n)?\ up|giving\ up|stopped|quit|dropp?(?:ed|ing)|scrap(?:ped)?
    | forget\ (?:what|about|the|that)|ignore\ what|update[ds]?|slipped|raised|lowered|reduced|increased|extended
    | shortened|(?:went|gone|going|go)\ back\ (?:to|on)|turn(?:s|ed)\ out
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REPLACED = re.compile(r"\b(?:rather than|instead of|better than|in place of)((?:\s+[\w'’-]+){1,4})", re.IGNORECASE)
_HINTS = re.compile(
    r"\b(?:now|actually|instead|new|again|rather|make (?:it|that)|these days|nowadays|from (?:now|today)|since"
    r"|meanwhile|let'?s|will be|sorry|wait|no)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\b(?:not|never|no|without|cannot|no longer|stop(?:ped)?)|n['’]t)\b((?:\s+[\w'’-]+){1,5})", re.IGNORECASE
)
_LABEL = re.compile(r"^\s*\w+:\s")
_STATIVE = re.compile(
    r"\b(?:is|are|was|were|will be|should be|must be|['’]s|lives?|works?|called|named|located|based|belongs?)\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|hundred|thousand|half|quarter|noon|midnight|\d[\d.,:]*)\b",
    re.IGNORECASE,
)
_DATES = frozenset({"date", "time"})
_NUMBERS = frozenset({"amount", "quantity", "number", "port", "version", "id", "host"})


@lru_cache(maxsize=4096)
def _statements(text: str) -> tuple[_Statement, ...]:
    """Return what a message states, sentence by sentence. Questions state nothing."""
    if len(text) > LONGEST_TEXT:
        return ()
    found = tuple(_read(text))
    return found if len(found) <= MOST_STATEMENTS else ()


def _read(text: str) -> Iterator[_Statement]:
    for sentence in _SENTENCE_END.split(text):
        found = frozenset(words(_LABEL.sub("", sentence)))
        if not found or sentence.rstrip(" \"')*_").endswith("?"):
            continue
        cues = [match["cue"] for match in _ANNOUNCES.finditer(sentence) if not match["kept"]]
        values: dict[str, set[str]] = {}
        for kind, part in (*hard_kinds(sentence), *(("number", match[0]) for match in _COUNTED.finditer(sentence))):
            group = "date" if kind in _DATES else "number" if kind in _NUMBERS else kind
            values.setdefault(group, set()).add(part.lower())
        yield _Statement(
            plain=" ".join(sentence.lower().split()),
            words=found,
            value_words=frozenset(word for parts in values.values() for part in parts for word in words(part)),
            values={kind: frozenset(parts) for kind, parts in values.items()},
            denied=frozenset(word for match in _DENIED.finditer(sentence) for word in words(match[1])),
            announces=bool(cues),
            cue_words=frozenset(word for cue in cues for word in words(cue)),
            replaced=frozenset(word for match in _REPLACED.finditer(sentence) for word in words(match[1])),
            hints=_HINTS.search(sentence) is not None,
            stative=_STATIVE.search(sentence) is not None,
        )
