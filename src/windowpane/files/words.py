"""Read the words of documents, within limits.

A document may have been made to hurt: a few bytes that unpack to many, pages that never end, entities that name each
other. So what is unpacked and what is read is counted, and whatever goes wrong gives no words instead of an error.
"""

import io
import logging
import zipfile
import zlib
from collections.abc import Callable
from time import monotonic
from typing import Any
from xml.etree import ElementTree as ET

from pypdf import PageObject, PdfReader, apply_configuration

from windowpane.context.text import valid_unicode
from windowpane.files.sniff import DOCX_BODY

MAX_CHARACTERS = 2_000_000
"""How many characters of a document are read."""

MAX_UNPACKED_BYTES = 50_000_000
"""How much a Word document may unpack to."""

MAX_PAGES = 2_000
MAX_SECONDS = 20.0
"""How long a document is read; the words up to then count."""

PDF_LIMITS: dict[str, Any] = {
    "stream_parsing_work_maximum_count": 200_000,
    "zlib_maximum_output_length": 10_000_000,
    "lzw_maximum_output_length": 10_000_000,
    "run_length_maximum_output_length": 10_000_000,
    "array_based_stream_maximum_output_length": 10_000_000,
    "xform_maximum_invocations_per_extraction": 500,
    "jbig2dec_binary": None,
}
"""What one page may make the reader do; a full page of text has a few thousand parts. No program is run for images."""

_CHUNK = 65_536
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

# It warns about every oddity of a file, and files are odd.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class _TimeIsUpError(BaseException):
    """The document was read for long enough. The reader passes over ordinary errors, and must not pass over this."""


def pdf_words(data: bytes, clock: Callable[[], float] = monotonic) -> tuple[str, int]:
    """Return what a PDF says and how many pages it has; no words and no pages when it cannot be read."""
    pages = 0
    found: list[str] = []
    try:
        with apply_configuration(**PDF_LIMITS):
            reader = PdfReader(io.BytesIO(data), strict=False)
            pages = len(reader.pages)
            ends, left = clock() + MAX_SECONDS, MAX_CHARACTERS
            for page in reader.pages[:MAX_PAGES]:
                text = valid_unicode(_page_words(page, ends, clock))[:left]
                found.append(text.strip())
                left -= len(text)
                if left <= 0:
                    break
    # A file that was made to hurt makes the reader fail in any way there is.
    except (Exception, _TimeIsUpError):  # noqa: BLE001
        return "\n\n".join(filter(None, found)), pages
    return "\n\n".join(filter(None, found)), pages


def _page_words(page: PageObject, ends: float, clock: Callable[[], float]) -> str:
    def check(*_: object) -> None:
        if clock() > ends:
            raise _TimeIsUpError

    check()
    return page.extract_text(visitor_operand_before=check)


def docx_words(data: bytes, clock: Callable[[], float] = monotonic) -> str:
    """Return what a Word document says, a paragraph a line; nothing when it cannot be read or unpacks to too much."""
    words = _Words()
    parser = ET.XMLParser(target=words)  # noqa: S314 – `_Words` refuses document types, so there are no entities
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(DOCX_BODY) as body:
            # What is unpacked is counted: what the archive says of its own size is not believed.
            left, ends = MAX_UNPACKED_BYTES, clock() + MAX_SECONDS
            while chunk := body.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    return ""
                # Piece by piece, and no tree of it: other threads have their turn, and memory is needed for the words.
                parser.feed(chunk)
                if words.left <= 0 or clock() > ends:
                    return words.text
        parser.close()
    except (zipfile.BadZipFile, zlib.error, ET.ParseError, LookupError, ValueError, OSError, RuntimeError):
        return ""
    return words.text


class _Words:
    """Collects the words of a Word document while it is parsed. What stands in a paragraph's own texts counts."""

    def __init__(self) -> None:
        self.left = MAX_CHARACTERS
        self._parts: list[str] = []
        self._depth = 0
        self._in_text = False

    @property
    def text(self) -> str:
        return valid_unicode("".join(self._parts))[:MAX_CHARACTERS].strip()

    def doctype(self, name: str, public_id: str | None, system_id: str | None) -> None:
        """Refuse a document type, in every encoding: no word processor writes one, and entities are what it is for."""
        raise ValueError("a document type")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == f"{_W}p":
            if self._depth:
                self._add("\n")
            self._depth += 1
        elif self._depth:
            self._in_text = tag == f"{_W}t"
            self._add(_WRITTEN.get(tag, ""))

    def data(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def end(self, tag: str) -> None:
        self._in_text = False
        if tag == f"{_W}p":
            self._depth -= 1
            self._add("\n")

    def close(self) -> None:
        """Nothing is left to do at the end."""

    def _add(self, text: str) -> None:
        if text and self.left > 0:
            self._parts.append(text)
            self.left -= len(text)


_WRITTEN = {f"{_W}tab": "\t", f"{_W}br": "\n"}
