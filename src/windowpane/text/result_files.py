"""The files that a tool returned: which of them the model is given, and what it is told of the others."""

from collections.abc import Sequence
from dataclasses import replace

import anyio.to_thread

from windowpane.context.ids import BlobHash
from windowpane.context.messages import Attachment, NewFile
from windowpane.context.request import CallSettings
from windowpane.errors import InvalidInputError
from windowpane.files.read import DEFAULT_LIMIT_BYTES, MAX_FILES, NO_FILES, ReadFiles, read_file
from windowpane.text.attached import sent_files

NOT_TAKEN = "\n[{name} was returned, but this model takes no {kind}: you cannot see it]"
NO_ROOM = "\n[{name} was returned, but did not fit the context window: you cannot see it]"


async def take_files(files: Sequence[NewFile], settings: CallSettings, room_tokens: int) -> tuple[ReadFiles, str]:
    """Return the files that are kept with a result, and what the text of the result says of those it is without.

    A file that is nothing that a model can be given, or too large, is only named, as the text does already.
    """
    if not files:
        return NO_FILES, ""
    return await anyio.to_thread.run_sync(_take, files, settings, room_tokens)


def _take(files: Sequence[NewFile], settings: CallSettings, room_tokens: int) -> tuple[ReadFiles, str]:
    kept: list[Attachment] = []
    blobs: dict[BlobHash, str] = {}
    notes, left = "", DEFAULT_LIMIT_BYTES
    for file in files[:MAX_FILES]:
        if len(file.data) > left:
            continue
        try:
            attachment, texts = read_file(file)
        except InvalidInputError:
            continue
        tokens = sum(sent.tokens for sent in sent_files([attachment], settings))
        if attachment.kind in settings.inputs and tokens > room_tokens:
            notes += NO_ROOM.format(name=attachment.name)
            continue
        if attachment.kind not in settings.inputs:
            notes += NOT_TAKEN.format(
                name=attachment.name, kind="images" if attachment.kind == "image" else "such files"
            )
        # The words of a document stand in no request: only what is sent as it is has a place in a result.
        attachment = replace(attachment, text=None)
        kept.append(attachment)
        blobs[attachment.blob] = texts[attachment.blob]
        room_tokens -= tokens
        left -= len(file.data)
    return ReadFiles(tuple(kept), blobs), notes
