"""Keep the body of a call so that its exact bytes can be put together again, and store only what is new.

A body is JSON. It is cut into pieces: its long strings, the messages and tools of its lists, and the text between
them. Strings and elements become blobs, named by content, so that what was sent before is there already; a string is
kept as the text that it says, which is often the very text of the request as it was built. The bytes of a file are such
a string, wherever they stand: they are kept as base64 alone, as the session keeps the file. The rest is the skeleton
(`skeleton.py`).

Cutting goes on from where a body stops being the one before it: places in that are marked with a hash of all that
stands before them. What is not cut again is stored already.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from json.decoder import JSONDecoder
from typing import Any, cast

from windowpane.calls.skeleton import LastBody, Mark, Piece, pieces_of, written
from windowpane.context.ids import BlobHash, content_hash
from windowpane.context.text import valid_unicode

LONG_CHARACTERS = 200
"""Strings and values from this length on are kept apart. A shorter one costs less than its name and its place."""

DEEPEST = 3
"""Lists in messages in the body: deeper texts stay within their element."""

FILE_CHARACTERS = 2_000
"""A string of this length may be a file, in base64: it is looked for at any depth."""

APART = 4_000
"""How many characters are between the marks of a body: at most so much is cut again that was cut before."""

_RAW, _STRING, _ASCII_STRING, _BYTES, _URL_SAFE = "raw", "string", "ascii", "bytes", "url"
_DATA_URL = re.compile(r"data:[\w.+/;=-]{1,100};base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_TO_URL_SAFE, _TO_STANDARD = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")
_decode = JSONDecoder().raw_decode


@dataclass(slots=True)
class Pieces:
    """A body in pieces, and the texts that its names stand for; of pieces that were taken over, no texts."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    texts: dict[BlobHash, str] = field(default_factory=dict[BlobHash, str])
    marks: list[Mark] = field(default_factory=list[Mark])

    def name(self, kind: str, text: str) -> None:
        """Add a piece that is kept as a blob."""
        name = content_hash(text)
        self.texts[name] = text
        self.pieces.append((kind, name))


@dataclass(frozen=True, slots=True)
class KeptBody:
    """What must be stored for one body: the blob `name`, and `blobs`, itself among them."""

    name: BlobHash
    blobs: Mapping[BlobHash, str]


def keep(body: bytes, last: LastBody | None = None) -> tuple[KeptBody, LastBody]:
    """Return what to store for a body, and what the next call passes in as `last`. Its texts are stored already."""
    cut = _cut(body, last)
    text, last_now = written(cut.pieces, last)
    known = {piece[1] for piece in last.pieces if not isinstance(piece, str)} if last is not None else set[BlobHash]()
    new = {name: each for name, each in cut.texts.items() if name not in known}
    return KeptBody(last_now.name, {**new, last_now.name: text}), replace(last_now, marks=tuple(cut.marks))


def join(skeleton: str, texts: Mapping[BlobHash, str]) -> bytes:
    """Return the bytes of a body. `texts` holds the skeletons as well that this one is compared to.

    Raises:
        KeyError: a text of the body is not among `texts`: it was erased.
    """
    return b"".join(_written(piece, texts) for piece in pieces_of(skeleton, texts))


def _written(piece: Piece, texts: Mapping[BlobHash, str]) -> bytes:
    if isinstance(piece, str):
        return piece.encode()
    kind, name = piece
    text = texts[name]
    if kind == _RAW:
        return text.encode()
    if kind == _BYTES:
        return base64.b64decode(text)
    if kind == _URL_SAFE:
        return text.translate(_TO_URL_SAFE).encode()
    return json.dumps(text, ensure_ascii=kind == _ASCII_STRING).encode()


def _cut(body: bytes, last: LastBody | None) -> Pieces:
    found = Pieces()
    try:
        text = body.decode()
    except UnicodeDecodeError:
        found.name(_BYTES, base64.b64encode(body).decode())
        return found
    try:
        _Cutter(text, found).cut(last)
    except (ValueError, RecursionError, IndexError):
        # Not JSON, or not an object: it is kept in one piece.
        found = Pieces()
        found.name(_RAW, text)
    return found


class _Cutter:
    """Walks through a body and cuts it. Values are measured by the decoder of the standard library."""

    def __init__(self, text: str, found: Pieces) -> None:
        self._text = text
        self._found = found
        self._written = 0
        self._hash = hashlib.sha256()
        self._hashed = 0

    def cut(self, last: LastBody | None) -> None:
        start = _skip(self._text, 0)
        if self._text[start] != "{":
            raise ValueError("not one JSON object")
        mark = self._taken_over(last) if last is not None else None
        if mark is None:
            at = _skip(self._text, start + 1)
        else:
            at = _next(self._text, mark.at)
            at = _next(self._text, self._elements(at, 0)) if mark.in_list else at
        if _skip(self._text, self._fields(at)) != len(self._text):
            raise ValueError("more than one JSON object")
        self._literal(len(self._text))

    def _taken_over(self, last: LastBody) -> Mark | None:
        """Take over what this body has in common with another one, and return the mark at which that ends."""
        found = None
        for mark in last.marks:
            known = self._hash.copy()
            known.update(self._text[self._hashed : mark.at].encode("utf-8", "surrogatepass"))
            if mark.at > len(self._text) or known.digest() != mark.digest:
                break
            self._hash, self._hashed, found = known, mark.at, mark
            self._found.marks.append(mark)
        if found is not None:
            self._found.pieces.extend(last.pieces[: found.pieces])
            self._written = found.written
        return found

    def _mark(self, at: int, *, in_list: bool) -> None:
        # After a number, the next body could go on with another digit.
        if at - self._hashed >= APART and self._text[at - 1] in '}]"':
            self._hash.update(self._text[self._hashed : at].encode("utf-8", "surrogatepass"))
            self._hashed = at
            mark = Mark(at, self._hash.digest(), len(self._found.pieces), self._written, in_list)
            self._found.marks.append(mark)

    def _fields(self, at: int) -> int:
        """Walk through the fields of the body from here on, and return where it ends."""
        while self._text[at] != "}":
            _, at = _decode_at(self._text, at)
            at = self._value(_skip(self._text, _skip(self._text, at) + 1), 0)
            self._mark(at, in_list=False)
            at = _next(self._text, at)
        return at + 1

    def _object(self, at: int, depth: int) -> int:
        """Walk through the object that begins here, and return where it ends."""
        at = _skip(self._text, at + 1)
        while self._text[at] != "}":
            _, at = _decode_at(self._text, at)
            at = self._value(_skip(self._text, _skip(self._text, at) + 1), depth)
            at = _next(self._text, at)
        return at + 1

    def _value(self, at: int, depth: int) -> int:
        if self._text[at] == "[" and depth < DEEPEST and self._text[_skip(self._text, at + 1)] == "{":
            return self._list(at, depth)
        value, end = _decode_at(self._text, at)
        if end - at >= LONG_CHARACTERS:
            self._kept(value, at, end)
        return end

    def _kept(self, value: Any, at: int, end: int) -> None:
        """Keep a value: whole, or, where it holds a file, in pieces."""
        if end - at < FILE_CHARACTERS:
            self._blob(value, at, end)
            return
        begins = at
        for file in filter(None, map(_File.of, _long_strings(value))):
            start = self._text.find(file.data, at, end)
            # One that is written with escapes is not found, and stays in its place.
            if start >= 0:
                self._span(at, start)
                self._literal(start)
                self._written = at = start + len(file.data)
                self._found.name(file.kind, file.data.translate(_TO_STANDARD))
        if at == begins:
            self._blob(value, at, end)
        else:
            self._span(at, end)

    def _span(self, at: int, end: int) -> None:
        """Keep a stretch of the body as it is written."""
        self._literal(at)
        if end - at >= LONG_CHARACTERS:
            self._written = end
            self._found.name(_RAW, self._text[at:end])

    def _list(self, at: int, depth: int) -> int:
        return self._elements(_skip(self._text, at + 1), depth)

    def _elements(self, at: int, depth: int) -> int:
        while self._text[at] != "]":
            element, end = _decode_at(self._text, at)
            self._element(element, at, end, depth)
            if depth == 0:
                # The next call has the same element, and may add another after it.
                self._literal(end)
                self._mark(end, in_list=True)
            at = _next(self._text, end)
        return at + 1

    def _element(self, element: Any, at: int, end: int, depth: int) -> None:
        if isinstance(element, dict) and _is_mostly_text(cast("dict[str, Any]", element), end - at):
            self._object(at, depth + 1)
        elif end - at >= LONG_CHARACTERS:
            self._kept(cast("Any", element), at, end)

    def _blob(self, value: Any, at: int, end: int) -> None:
        self._literal(at)
        self._written = end
        span = self._text[at:end]
        # Half a character is written as an escape, and no store can keep it as text.
        if isinstance(value, str) and valid_unicode(value) == value:
            for kind in (_STRING, _ASCII_STRING):
                if json.dumps(value, ensure_ascii=kind == _ASCII_STRING) == span:
                    self._found.name(kind, value)
                    return
        self._found.name(_RAW, span)

    def _literal(self, until: int) -> None:
        if until > self._written:
            self._found.pieces.append(self._text[self._written : until])
            self._written = until


def file_hash(text: str) -> BlobHash:
    """Return the name of the file that a string holds in base64, alone or in a `data:` address."""
    head = _DATA_URL.match(text)
    return content_hash((text[head.end() :] if head else text).translate(_TO_STANDARD))


@dataclass(frozen=True, slots=True)
class _File:
    """The base64 of a file, and how it is written."""

    data: str
    kind: str

    @staticmethod
    def of(text: str) -> "_File | None":
        """Return the file that a string holds: alone, or in a `data:` address; None when it holds none."""
        head = _DATA_URL.match(text)
        data = text[head.end() :] if head else text
        if len(data) < FILE_CHARACTERS or not _BASE64.fullmatch(data):
            return None
        url_safe = "-" in data or "_" in data
        if url_safe and ("+" in data or "/" in data):
            return None
        return _File(data, _URL_SAFE if url_safe else _RAW)


def _long_strings(value: Any) -> Iterator[str]:
    """Yield the strings of a value that are long enough for a file, in the order in which they are written."""
    if isinstance(value, str):
        if len(value) >= FILE_CHARACTERS:
            yield value
    elif isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from _long_strings(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _long_strings(each)


def _decode_at(text: str, at: int) -> tuple[Any, int]:
    try:
        return _decode(text, at)
    except StopIteration as error:
        raise ValueError("not JSON") from error


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r":
        at += 1
    return at


def _next(text: str, at: int) -> int:
    """Return where the next key or element begins, or the closing bracket stands."""
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at


def _is_mostly_text(fields: Mapping[str, Any], size: int) -> bool:
    """Tell whether long strings make up most of an element, as in a message."""
    long = 0
    for value in fields.values():
        if isinstance(value, str):
            long += len(value) if len(value) >= LONG_CHARACTERS else 0
        elif isinstance(value, list):
            parts = [cast("dict[str, object]", part) for part in cast("list[object]", value) if isinstance(part, dict)]
            texts = (text for part in parts for text in part.values() if isinstance(text, str))
            long += sum(len(text) for text in texts if len(text) >= LONG_CHARACTERS)
            long += sum(_file_characters(each) for part in parts for each in part.values())
        else:
            long += _file_characters(value)
    return long * 2 > size


def _file_characters(value: object) -> int:
    """Return how many characters of a value within a part are long strings, such as files."""
    return 0 if isinstance(value, str) else sum(map(len, _long_strings(value)))
