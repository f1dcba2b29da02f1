"""The words of a text as an index has them, and where a text has them.

A word is found by its beginning: the index has the first three and the first five letters of each, and what is found
by them is compared with the text. Chinese, Japanese, Korean and Thai have no spaces between words: there every
character and every two neighbours are indexed, and any run of them is found.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b

from windowpane.search.languages import DENSE

_WORD = re.compile(r"[^\W_]+")
_DENSE_RUN = re.compile(f"[{DENSE}]+|[^{DENSE}]+")
_DENSE = re.compile(f"[{DENSE}]")
_SHORT, _LONG = 3, 5
EXCERPT_CHARS = 160
_LINE_MARKS = re.compile(
    r"^[ \t]*(?:(?:```|~~~).*|[|:-][ |:-]*$|#{1,6}[ \t]|>[ \t]?|[-*+][ \t](?:[ \t]*\[[ xX]\][ \t])?)", re.MULTILINE
)
_TABLE_LINE = re.compile(r"^[ \t]*\|.*", re.MULTILINE)
_LINK = re.compile(r"!?\[([^][\n]{1,200})\]\([^()\s]{0,2000}\)")


def words_of(text: str) -> list[str]:
    """Return the words of a text, small and composed. A run of characters without spaces is one."""
    whole = unicodedata.normalize("NFKC", text).casefold()
    return [run for word in _WORD.findall(whole) for run in _DENSE_RUN.findall(word)]


def terms_of(text: str) -> frozenset[str]:
    """Return the fingerprints that a text is found by."""
    return frozenset(term for word in set(words_of(text)) for term in _beginnings(word))


def terms_asked(words: Iterable[str]) -> frozenset[str]:
    """Return the fingerprints that a text must have to have all of these words."""
    return frozenset(term for word in words for term in _asked(word))


def fact(kind: str, value: str = "") -> str:
    """Return the fingerprint of something that a request had, such as an item that was left out."""
    return fingerprint(f"{kind}\x1f{value.casefold()}")


def has(text: str, words: Sequence[str]) -> bool:
    """Tell whether a text has words that begin with each of these."""
    own = sorted(set(words_of(text)))
    joined = " ".join(own)
    return all(word in joined if _DENSE.match(word) else _begins(own, word) for word in words)


def _begins(own: Sequence[str], word: str) -> bool:
    """Tell whether one of these sorted words begins so."""
    at = bisect_left(own, word)
    return at < len(own) and own[at].startswith(word)


def excerpt(text: str, words: Sequence[str]) -> str:
    """Return some of a text, in one line and without the marks of Markdown, around the first of the words."""
    line = " ".join(_without_marks(text).split())
    folded = line.casefold()
    first = re.search(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})", folded) if words else None
    places = [first.start()] if first else []
    places += [folded.find(word) for word in words if _DENSE.match(word) and word in folded]
    start = max(min(places, default=0) - EXCERPT_CHARS // 4, 0)
    if start:
        start = line.find(" ", start) + 1 or start
    end = start + EXCERPT_CHARS
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def _without_marks(text: str) -> str:
    """Return what a reader sees of Markdown. Underlines stay: names have them."""
    lines = _LINE_MARKS.sub("", text)
    cells = _TABLE_LINE.sub(lambda row: row[0].replace("|", " "), lines)
    return _LINK.sub(r"\1", cells).replace("**", "").replace("`", "")


@lru_cache(maxsize=50_000)
def fingerprint(term: str) -> str:
    """Return what stands for a term in the index."""
    return blake2b(term.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _beginnings(word: str) -> Iterator[str]:
    if _DENSE.match(word):
        yield from (fingerprint(character) for character in word)
        yield from (fingerprint(word[at : at + 2]) for at in range(len(word) - 1))
        return
    yield fingerprint(word[:_SHORT])
    if len(word) >= _LONG:
        yield fingerprint(word[:_LONG])


def _asked(word: str) -> Iterator[str]:
    if _DENSE.match(word):
        yield from (fingerprint(word[at : at + 2]) for at in range(max(len(word) - 1, 1)))
    else:
        yield fingerprint(word[:_LONG] if len(word) >= _LONG else word[:_SHORT])
