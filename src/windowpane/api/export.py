"""A session as one document: everything that happened, when, and every text that its requests were made of."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from windowpane.context.events import Event
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import InvalidInputError
from windowpane.errors.faults import first_fault
from windowpane.json_codec import JsonCodec


@dataclass(frozen=True, slots=True)
class ExportedEvent:
    """An event in its place, as in the log."""

    seq: int
    at: datetime
    event: Annotated[Event, Field(discriminator="type")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExport:
    """A whole session. `blobs` are texts by the hash of their content."""

    id: SessionId
    events: tuple[ExportedEvent, ...]
    blobs: Mapping[BlobHash, str]
    exported_at: datetime
    format: Literal["windowpane.session"] = "windowpane.session"
    version: Literal[1] = 1


EXPORT = JsonCodec(SessionExport)
"""Reads and writes exports as JSON."""


_BLOBS = JsonCodec(dict[BlobHash, str])


def read_export(body: Mapping[str, Any]) -> SessionExport:
    """Return the export that some JSON describes.

    Raises:
        InvalidInputError: it is not one.
    """
    try:
        # Texts may hold half a character, as tools sent it, which only Python's own JSON carries.
        blobs = _BLOBS.adapter.validate_python(body.get("blobs"), strict=True)
        whole = EXPORT.adapter.validate_json(json.dumps({**body, "blobs": {}}, allow_nan=False), strict=True)
        return replace(whole, blobs=blobs)
    except ValueError as error:
        if not isinstance(error, ValidationError):
            raise InvalidInputError(f"this is not an exported session: {error}") from None
        where = ": ".join(filter(None, first_fault(error)))
        raise InvalidInputError(f"this is not an exported session: {where}") from None
