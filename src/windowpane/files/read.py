"""Take files in: what each is, whether it may come in, and what it says.

A file is refused with a reason that names it and a next step. Words are read in a thread, within limits: a document
that unpacks to more than it should, or takes too long, is kept and has no words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio.to_thread

from windowpane.context.ids import BlobHash, content_hash
from windowpane.context.messages import PDF_TYPE, Attachment, NewFile, as_text
from windowpane.context.text import valid_unicode
from windowpane.errors import InvalidInputError
from windowpane.files.sniff import DOCX_TYPE, TEXT_TYPE, decoded, sniff

MAX_FILES = 20
"""How many files a message may bring."""

MAX_NAME_CHARACTERS = 200
DEFAULT_LIMIT_BYTES = 20 * 1024 * 1024
"""How much the files of a message may take together, unless the process is told otherwise."""

TAKEN = "PNG, JPEG, GIF and WebP images, PDF, Word documents (.docx) and text files can be attached"


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """Files that were taken in, and the texts that must be stored with them."""

    attachments: tuple[Attachment, ...] = ()
    blobs: Mapping[BlobHash, str] = field(default_factory=dict[BlobHash, str])


NO_FILES = ReadFiles()


async def read_files(files: Sequence[NewFile], *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> ReadFiles:
    """Return files as a session keeps them.

    Raises:
        InvalidInputError: there are too many, they are too large, or one is nothing that can be attached.
    """
    if not files:
        return NO_FILES
    if len(files) > MAX_FILES:
        raise InvalidInputError(f"a message can bring {MAX_FILES} files at most, not {len(files)}; send fewer")
    total = sum(len(file.data) for file in files)
    if total > limit_bytes:
        raise InvalidInputError(
            f"the files have {total:,} bytes and {limit_bytes:,} is the limit of a message "
            "(WINDOWPANE_ATTACHMENT_BYTES); send fewer or smaller ones"
        )
    # Whole documents are read here.
    return await anyio.to_thread.run_sync(_read, files)


def _read(files: Sequence[NewFile]) -> ReadFiles:
    attachments: list[Attachment] = []
    blobs: dict[BlobHash, str] = {}
    for file in files:
        attachment, kept = read_file(file)
        attachments.append(attachment)
        blobs |= kept
    return ReadFiles(tuple(attachments), blobs)


def read_file(file: NewFile) -> tuple[Attachment, dict[BlobHash, str]]:
    """Return a file as a session keeps it, and the texts that must be stored with it.

    Raises:
        InvalidInputError: it is nothing that can be attached.
    """
    name = file_name(file.name)
    found = sniff(file.data)
    if not file.data:
        raise InvalidInputError(f"the file {name!r} is empty")
    if found is None:
        raise InvalidInputError(f"the file {name!r} is damaged, or of a kind that cannot be attached: {TAKEN}")
    data = as_text(file.data)
    blobs = {content_hash(data): data}
    attachment = Attachment(
        name=name,
        media_type=found.media_type,
        size=len(file.data),
        blob=content_hash(data),
        width=found.width,
        height=found.height,
    )
    words, pages = _words(file.data, found.media_type)
    if words.strip():
        blobs[content_hash(words)] = words
        attachment = replace(attachment, text=content_hash(words))
    return replace(attachment, pages=pages), blobs


def file_name(name: str) -> str:
    """Return a file's name as one short line, without the folders that it was in."""
    last = valid_unicode(name).replace("\\", "/").rstrip("/").rpartition("/")[2]
    line = " ".join("".join(c if c.isprintable() else " " for c in last).split())
    return line[:MAX_NAME_CHARACTERS] or "file"


def _words(data: bytes, media_type: str) -> tuple[str, int]:
    """Return what a file says, and how many pages it has."""
    # Imported late: most processes never read a document.
    from windowpane.files.words import docx_words, pdf_words

    if media_type == TEXT_TYPE:
        return decoded(data) or "", 0
    if media_type == DOCX_TYPE:
        return docx_words(data), 0
    if media_type == PDF_TYPE:
        return pdf_words(data)
    return "", 0
