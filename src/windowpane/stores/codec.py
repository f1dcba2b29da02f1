"""Events as JSON and back: one encoding for every store, for exports and for the wire.

JSON is Unicode, and half of a surrogate pair is not: text that holds one is refused before anything is stored.
"""

from typing import Annotated, Any

from pydantic import Field
from pydantic_core import PydanticSerializationError

from windowpane.api.wire import EVENT
from windowpane.context.events import CallEnded, CallSent, Event, Sealed
from windowpane.context.session import SessionState
from windowpane.errors import InvalidInputError
from windowpane.json_codec import JsonCodec

_STORED = JsonCodec[Any](Annotated[Event | Sealed, Field(discriminator="type")])
_CALL = JsonCodec[CallSent | CallEnded](CallSent | CallEnded)
_STATE = JsonCodec(SessionState)


def encode_event(event: Event) -> bytes:
    """Return an event as compact JSON. Calls are many and much alike: of theirs only what is not the default is kept.

    Raises:
        InvalidInputError: it holds something that JSON cannot carry.
    """
    try:
        if isinstance(event, CallSent | CallEnded):
            kept = _CALL.adapter.dump_json(event, exclude_defaults=True, warnings="error")
            return b'{"type":"%b",%b' % (event.type.encode(), kept[1:])
        # What is of another kind than declared could not be read again, and the session with it.
        return EVENT.adapter.dump_json(event, warnings="error")
    except PydanticSerializationError as error:
        raise InvalidInputError(f"{event.type} cannot be kept as JSON: {error}") from None


def decode_event(body: bytes | str) -> Event:
    """Return the event that this JSON describes.

    What an encrypted store wrote comes back as `Sealed`, which is no `Event`: the encrypted store opens it, and without
    the key `fold` refuses it.
    """
    return _STORED.adapter.validate_json(body)


def encode_state(state: SessionState) -> bytes:
    """Return a folded state as JSON, for a snapshot."""
    return _STATE.adapter.dump_json(state)


def decode_state(body: bytes) -> SessionState:
    """Return the folded state that this JSON describes."""
    return _STATE.adapter.validate_json(body)
