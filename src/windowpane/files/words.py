"""Read the words of documents, within limits.

A document may have been made to hurt: a few bytes that unpack to many, pages that never end, entities that name each
other. So what is unpacked and what is read is counted, and whatever goes wrong gives no words instead of an error.
"""

import io
import logging
import zipfile
import zlib
from time import monotonic
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from pypdf import PdfReader

from windowpane.context.text import valid_unicode
from windowpane.files.sniff import DOCX_BODY

MAX_CHARACTERS = 2_000_000
"""How many characters of a document are read."""

MAX_UNPACKED_BYTES = 50_000_000
"""How much a Word document may unpack to."""

MAX_PAGES = 2_000
MAX_SECONDS = 20.0
"""How long a PDF is read; the pages up to then count."""

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

# It warns about every oddity of a file, and files are odd.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def pdf_words(data: bytes) -> tuple[str, int]:
    """Return what a PDF says and how many pages it has; no words and no pages when it cannot be read."""
    pages = 0
    found: list[str] = []
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        pages = len(reader.pages)
        ends, left = monotonic() + MAX_SECONDS, MAX_CHARACTERS
        for page in reader.pages[:MAX_PAGES]:
            text = valid_unicode(page.extract_text())[:left]
            found.append(text.strip())
            left -= len(text)
            if left <= 0 or monotonic() > ends:
                break
    # A file that was made to hurt makes the reader fail in any way there is.
    except Exception:  # noqa: BLE001
        return "\n\n".join(filter(None, found)), pages
    return "\n\n".join(filter(None, found)), pages


def docx_words(data: bytes) -> str:
    """Return what a Word document says, a paragraph a line; nothing when it cannot be read or unpacks to too much."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(DOCX_BODY) as body:
            # Read one byte more than may be: what the archive says of its own size is not believed.
            xml = body.read(MAX_UNPACKED_BYTES + 1)
        if len(xml) > MAX_UNPACKED_BYTES or b"<!DOCTYPE" in xml:
            # No word processor writes a document type; entities are what it would be for.
            return ""
        root = ET.fromstring(xml)  # noqa: S314 – without a document type there are no entities
    except (zipfile.BadZipFile, zlib.error, ET.ParseError, LookupError, ValueError, OSError, RuntimeError):
        return ""
    return valid_unicode("\n".join(map(_said, root.iter(f"{_W}p"))))[:MAX_CHARACTERS].strip()


def _said(paragraph: Element) -> str:
    return "".join((node.text or "") if node.tag == _TEXT else _WRITTEN.get(node.tag, "") for node in paragraph.iter())


_TEXT = f"{_W}t"
_WRITTEN = {f"{_W}tab": "\t", f"{_W}br": "\n"}
