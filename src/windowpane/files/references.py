"""Make a reference of a file: its words, under a name and a title of its own.

What a file is is found out from its bytes, as for attachments. An image says nothing here, and is refused.
"""

import json
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

import anyio.to_thread

from windowpane.context.ids import content_hash
from windowpane.context.items import OwnReference, Reference, definition
from windowpane.context.messages import NewFile
from windowpane.context.text import first_heading
from windowpane.errors import InvalidInputError
from windowpane.files.read import file_name, read_file

MAX_REFERENCES = 20
"""How many references a session can make from files."""

MAX_CHARACTERS = 1_000_000
"""How long such a reference may be."""

LONGEST_NAME = 60
TAKEN = "PDF, Word documents (.docx) and text files can become references"

_NO_NAME = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class FileWords:
    """What a file says, and what it is called."""

    file: str
    words: str

    def reference(self, name: str) -> Reference:
        """Return the reference that it becomes."""
        title = first_heading(self.words) or self.file
        said = f"From the file {self.file}."
        return Reference(
            name, self.words, description=said, include="agent", version="this session", title=title, own=True
        )

    def own(self, name: str) -> OwnReference:
        """Return what a session remembers of it."""
        blob = content_hash(definition(self.reference(name)))
        return OwnReference(name=name, file=self.file, blob=blob, characters=len(self.words))


async def words_of(file: NewFile, *, limit_bytes: int) -> FileWords:
    """Return the words of a file.

    Raises:
        InvalidInputError: it is too large, of another kind, or has no words that can be read.
    """
    name = file_name(file.name)
    if len(file.data) > limit_bytes:
        raise InvalidInputError(
            f"the file {name!r} has {len(file.data):,} bytes and {limit_bytes:,} is the limit "
            "(WINDOWPANE_ATTACHMENT_BYTES); add a smaller one"
        )
    # A whole document is read here.
    attachment, blobs = await anyio.to_thread.run_sync(read_file, file)
    if attachment.kind == "image":
        raise InvalidInputError(f"the file {name!r} is an image and has no words: {TAKEN}")
    if attachment.text is None:
        raise InvalidInputError(f"no words can be read in the file {name!r}; a scanned document needs OCR first")
    words = blobs[attachment.text]
    if len(words) > MAX_CHARACTERS:
        raise InvalidInputError(
            f"the file {name!r} has more than {MAX_CHARACTERS:,} characters, the limit of a reference; add it in parts"
        )
    return FileWords(name, words)


def free_name(file: str, taken: Collection[str]) -> str:
    """Return what a reference made of a file is called: the file's name, with a number where that is taken."""
    stem = file.rpartition(".")[0] or file
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    name = _NO_NAME.sub("-", plain)[:LONGEST_NAME].strip("-") or "document"
    numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    return next(each for each in numbered if each not in taken)


def read_own(own: OwnReference, body: str) -> Reference:
    """Return a session's own reference from what its blob says.

    Raises:
        InvalidInputError: the blob holds something else.
    """
    try:
        found = FileWords(own.file, json.loads(body)["text"])
        made = found.reference(own.name)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InvalidInputError(f"the reference {own.name!r} is not what the session says of it") from None
    if definition(made) != body or found.own(own.name) != own or own.characters > MAX_CHARACTERS:
        raise InvalidInputError(f"the reference {own.name!r} is not what the session says of it")
    return made
