"""Files in the messages of clients: their bytes, from a `data:` address or from base64.

Addresses of other servers are not fetched: what a model is given is what the client sent, and no client can make this
server ask another one.
"""

import base64
import binascii
import mimetypes
import re
from collections.abc import Sequence

from windowpane.context.messages import NewFile
from windowpane.server.openai.asking import ContentPart
from windowpane.server.openai.errors import UnsupportedError

_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE)


def files_of(content: str | Sequence[ContentPart] | None, where: str) -> tuple[NewFile, ...]:
    """Return the files of a message.

    Raises:
        UnsupportedError: one is not sent as bytes.
    """
    parts = () if content is None or isinstance(content, str) else content
    return tuple(_file(part, f"{where}[{place}]") for place, part in enumerate(parts) if part.is_file)


def from_address(address: str, where: str, name: str = "") -> NewFile:
    """Return the file that a `data:` address holds.

    Raises:
        UnsupportedError: it is the address of another server, or its base64 cannot be read.
    """
    head = _DATA_URL.match(address)
    if head is None:
        why = (
            "Send the bytes as a data: address with base64 (data:image/png;base64,…): other addresses are not fetched."
        )
        raise UnsupportedError(where, why, "invalid_value")
    ending = mimetypes.guess_extension(head["type"] or "") or ""
    return from_base64(address[head.end() :], where, name or f"file{ending}")


def from_base64(data: str, where: str, name: str) -> NewFile:
    """Return the file that a text holds in base64.

    Raises:
        UnsupportedError: it cannot be read.
    """
    try:
        return NewFile(name, base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        raise UnsupportedError(where, "The base64 of the file cannot be read.", "invalid_value") from None


def _file(part: ContentPart, where: str) -> NewFile:
    if part.image_url is not None:
        address = part.image_url if isinstance(part.image_url, str) else part.image_url.url
        return from_address(address, f"{where}.image_url")
    told = part.file or part
    if told.file_data is not None:
        name, data = told.filename or "", told.file_data
        if data.startswith("data:"):
            return from_address(data, f"{where}.file_data", name)
        return from_base64(data, f"{where}.file_data", name or "file")
    if isinstance(part.file_url, str):
        return from_address(part.file_url, f"{where}.file_url")
    raise UnsupportedError(where, "Send the file itself, as file_data or image_url: uploaded files are not kept here.")
