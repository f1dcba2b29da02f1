"""The files of a session: which events name them, and their bytes."""

import binascii
from collections.abc import Iterable

from windowpane.context.events import Event, MessageAdded, ToolReturned, TurnStarted
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.messages import Attachment, as_bytes, blobs_of
from windowpane.errors import BlobNotFoundError, InvalidInputError
from windowpane.files.sniff import sniff
from windowpane.stores.base import Store


def attachments_in(event: Event) -> tuple[Attachment, ...]:
    """Return the files that an event brought."""
    match event:
        case TurnStarted(attachments=attachments) | MessageAdded(attachments=attachments):
            return attachments
        case ToolReturned(result=result):
            return result.attachments
        case _:
            return ()


def file_blobs(events: Iterable[Event]) -> tuple[BlobHash, ...]:
    """Return the names of every text that the files of events need."""
    return blobs_of(each for event in events for each in attachments_in(event))


async def read_attachment(store: Store, session_id: SessionId, blob: BlobHash) -> tuple[Attachment, bytes]:
    """Return a file of a session, and its bytes.

    Raises:
        SessionNotFoundError: no such session.
        BlobNotFoundError: the session has no such file, or it was erased.
    """
    log = await store.read(session_id)
    found = next((each for entry in log for each in attachments_in(entry.event) if each.blob == blob), None)
    if found is None:
        raise BlobNotFoundError(blob)
    return found, as_bytes(await store.blob(session_id, blob))


def check_attachment(attachment: Attachment, data: str) -> None:
    """Make sure that a file that comes from elsewhere is what it is said to be.

    Raises:
        InvalidInputError: it is not.
    """
    try:
        content = as_bytes(data)
    except (binascii.Error, ValueError):
        content = b""
    found = sniff(content)
    told = (attachment.media_type, attachment.width, attachment.height, attachment.size)
    if found is None or (found.media_type, found.width, found.height, len(content)) != told:
        raise InvalidInputError(f"the file {attachment.name!r} is not what the session says of it")
