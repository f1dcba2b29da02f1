"""Find out what a file is from its bytes. Its name and what its sender calls it are not asked.

Only what a model can be given is known: four kinds of image, PDF, Word documents and plain text. HTML and SVG are
plain text here, as is every other format that is made of words.
"""

import io
import struct
import zipfile
from dataclasses import dataclass

from windowpane.context.messages import PDF_TYPE

DOCX_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
TEXT_TYPE = "text/plain"
DOCX_BODY = "word/document.xml"

_LARGEST_SIDE = 65_535
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1b")


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What a file is. Width and height are those of an image."""

    media_type: str
    width: int = 0
    height: int = 0


def sniff(data: bytes) -> Sniffed | None:
    """Return what a file is, or None when it is nothing that a model can be given, or damaged."""
    if data.startswith(b"%PDF-"):
        return Sniffed(PDF_TYPE)
    if data.startswith(b"PK\x03\x04"):
        return Sniffed(DOCX_TYPE) if _is_docx(data) else None
    for begins, media_type, measure in _IMAGES:
        if data.startswith(begins):
            try:
                width, height = measure(data)
            except (struct.error, IndexError):
                return None
            whole = 0 < width <= _LARGEST_SIDE and 0 < height <= _LARGEST_SIDE
            return Sniffed(media_type, width, height) if whole else None
    return Sniffed(TEXT_TYPE) if decoded(data) is not None else None


def decoded(data: bytes) -> str | None:
    """Return the words of a text file, or None when it is none: UTF-8, or UTF-16 that says so."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if any(ord(character) in _CONTROL for character in set(text)) else text


def _png(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR" or b"IEND" not in data[-32:]:
        return 0, 0
    return struct.unpack(">II", data[16:24])


def _gif(data: bytes) -> tuple[int, int]:
    return struct.unpack("<HH", data[6:10]) if b"\x3b" in data[-16:] else (0, 0)


def _jpeg(data: bytes) -> tuple[int, int]:
    """Return the size that the first frame of a JPEG file tells. One that is cut off before its image has none."""
    at, size = 2, (0, 0)
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        (length,) = struct.unpack(">H", data[at + 2 : at + 4])
        if marker in _JPEG_SIZES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            size = width, height
        if marker == 0xDA:
            # The image itself follows: it must have an end.
            return size if b"\xff\xd9" in data[at + length :] else (0, 0)
        at += 2 + length
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    (length,) = struct.unpack("<I", data[4:8])
    if data[8:12] != b"WEBP" or length + 8 > len(data):
        return 0, 0
    form = data[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8L":
        (bits,) = struct.unpack("<I", data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _png),
    (b"\xff\xd8\xff", "image/jpeg", _jpeg),
    (b"GIF87a", "image/gif", _gif),
    (b"GIF89a", "image/gif", _gif),
    (b"RIFF", "image/webp", _webp),
)


def _is_docx(data: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return DOCX_BODY in archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return False
