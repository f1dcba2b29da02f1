"""What the parts of an AG-UI message say: their text, and their files.

As at the other doors, only bytes are taken: addresses of other servers are not fetched, and files that a provider
keeps are not known here.
"""

import mimetypes
from collections.abc import Mapping, Sequence
from typing import cast

from ag_ui.core import AudioPart, ContentPart, DataSource, DocumentPart, ImagePart, TextPart, UrlSource, VideoPart

from windowpane.context.messages import NewFile
from windowpane.errors import InvalidInputError
from windowpane.server.openai.errors import UnsupportedError
from windowpane.server.openai.files import from_address, from_base64


def text_of(content: str | Sequence[ContentPart]) -> str:
    """Return the words of a message."""
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content if isinstance(part, TextPart))


def files_of(content: str | Sequence[ContentPart]) -> tuple[NewFile, ...]:
    """Return the files of a message.

    Raises:
        InvalidInputError: one is neither an image nor a document, or is not sent as bytes.
    """
    if isinstance(content, str):
        return ()
    parts = enumerate(content)
    return tuple(_file(part, f"content[{place}]") for place, part in parts if not isinstance(part, TextPart))


def _file(part: ImagePart | DocumentPart | AudioPart | VideoPart, where: str) -> NewFile:
    if not isinstance(part, ImagePart | DocumentPart):
        raise InvalidInputError(f"{where}: only text, images and documents can be sent here, not {part.type}")
    source, name = part.source, _name(part.metadata)
    try:
        match source:
            case DataSource():
                ending = mimetypes.guess_extension(source.mime_type) or ""
                return from_base64(source.value, where, name or f"file{ending}")
            case UrlSource():
                return from_address(source.value, where, name)
            case _:
                why = "Send the file itself, as a source of type data: files that a provider keeps are not read here."
                raise InvalidInputError(f"{where}: {why}")
    except UnsupportedError as error:
        raise InvalidInputError(f"{where}: {error}") from None


def _name(metadata: object) -> str:
    """Return the name that a frontend gives a file; the protocol has no field for it."""
    told = cast("Mapping[str, object]", metadata).get("filename") if isinstance(metadata, Mapping) else None
    return told if isinstance(told, str) else ""
