"""Cut a text into passages small enough to be judged one at a time.

A passage is a paragraph, or a run of short ones. It is always a slice of the text it
came from, so a match can be shown in place. A heading stays with what it heads. A
paragraph over the cap is cut at sentences, then at spaces, then anywhere, and its
pieces share a sentence so that nothing is understood only by halves.

Where one passage ends depends on the paragraphs around it and on nothing further
away: after a paragraph of `ENOUGH_CHARS` the cutting starts afresh. So an edit changes
the passages it touches and leaves the vectors of all others valid.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

CHUNKER_VERSION = 1
"""Part of the key of every cached vector: raise it when the cutting changes."""

CAP_CHARS = 500
"""No passage is longer than this."""

ENOUGH_CHARS = 120
"""Shorter paragraphs are joined with the next one."""

OVERLAP_CHARS = 80
"""The most that two pieces of one long paragraph share."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One passage: `text` is exactly the characters from `start` to `end` of its source."""

    start: int
    end: int
    text: str


def chunks(text: str, cap_chars: int = CAP_CHARS) -> tuple[Chunk, ...]:
    """Return the passages of a text in order; a text without a printing character has none."""
    spans: list[tuple[int, int]] = []
    for start, end in _groups(text, cap_chars):
        spans.extend([(start, end)] if end - start <= cap_chars else _pieces(text, start, end, cap_chars))
    return tuple(Chunk(start, end, text[start:end]) for start, end in spans)


_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_HEADING = re.compile(r"#{1,6}\s[^\n]*$")
_SENTENCE_END = re.compile(r"(?<=[.!?…:;])[\"')\]]*\s+|(?<=[。！？；])|\n")
_SPACE = re.compile(r"\s+")


def _groups(text: str, cap_chars: int) -> list[tuple[int, int]]:
    """Join short paragraphs with the next one, and a heading with what it heads."""
    groups: list[tuple[int, int]] = []
    opened: int | None = None
    closed = 0
    headed = False
    for start, end in _paragraphs(text):
        # A heading waits for its text even when the two must be cut apart again by sentences.
        if opened is not None and not headed and end - opened > cap_chars:
            groups.append((opened, closed))
            opened = None
        headed = (opened is None or headed) and _HEADING.fullmatch(text, start, end) is not None
        opened = start if opened is None else opened
        closed = end
        if not headed and end - opened >= ENOUGH_CHARS:
            groups.append((opened, closed))
            opened = None
    return groups if opened is None else [*groups, (opened, closed)]


def _paragraphs(text: str) -> list[tuple[int, int]]:
    gaps = [match.span() for match in _BLANK_LINES.finditer(text)]
    edges = [0, *(edge for gap in gaps for edge in gap), len(text)]
    spans = [_trimmed(text, edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]
    return [(start, end) for start, end in spans if start < end]


def _pieces(text: str, start: int, end: int, cap_chars: int) -> list[tuple[int, int]]:
    """Cut one long paragraph, each piece beginning with the last short sentence before it."""
    sentences = _sentences(text, start, end, cap_chars)
    pieces: list[tuple[int, int]] = []
    first = 0
    for i in range(1, len(sentences) + 1):
        if i < len(sentences) and sentences[i][1] - sentences[first][0] <= cap_chars:
            continue
        pieces.append((sentences[first][0], sentences[i - 1][1]))
        if i < len(sentences):
            shared = sentences[i - 1]
            short = shared[1] - shared[0] <= OVERLAP_CHARS and sentences[i][1] - shared[0] <= cap_chars
            first = i - 1 if short and i - 1 > first else i
    return pieces


def _sentences(text: str, start: int, end: int, cap_chars: int) -> list[tuple[int, int]]:
    edges = [start, *(match.end() for match in _SENTENCE_END.finditer(text, start, end)), end]
    sentences: list[tuple[int, int]] = []
    for left, right in pairwise(edges):
        span = _trimmed(text, left, right)
        if span[0] < span[1]:
            sentences.extend(_capped(text, *span, cap_chars))
    return sentences


def _capped(text: str, start: int, end: int, cap_chars: int) -> list[tuple[int, int]]:
    """Cut a sentence that is itself too long: at its last space, or where the cap falls."""
    spans: list[tuple[int, int]] = []
    while end - start > cap_chars:
        spaces = [match.start() for match in _SPACE.finditer(text, start + cap_chars // 2, start + cap_chars)]
        cut = spaces[-1] if spaces else start + cap_chars
        spans.append(_trimmed(text, start, cut))
        start, _ = _trimmed(text, cut, end)
    return [*spans, (start, end)]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without the white space at its two ends."""
    inner = text[start:end]
    lead = len(inner) - len(inner.lstrip())
    return (start + lead, start + lead + len(inner.strip()))
