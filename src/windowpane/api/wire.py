"""Events on the wire: a stored event is one JSON object, `{seq, at, …event}`.

Two differ from the log: `session.context` has its content in `data`, with who changed it and the marks of its files
beside, and `message.removed` calls the number of the message that it removes `removed`, since `seq` is its own.
"""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from windowpane.context.events import (
    Delta,
    Event,
    MessageRemoved,
    Missed,
    Recorded,
    SessionContext,
    SessionDeleted,
    ToolProgress,
    WatchEvent,
)
from windowpane.json_codec import JsonCodec

EVENT = JsonCodec[Event](Annotated[Event, Field(discriminator="type")])
"""Any event that a log can hold."""


def flat(recorded: Recorded) -> dict[str, Any]:
    """Return a stored event as one JSON object."""
    event = recorded.event
    more: dict[str, Any] = {}
    if isinstance(event, SessionContext):
        stored = EVENT.adapter.dump_python(event, mode="json")
        more = {"actor": stored["actor"], "marks": stored["marks"]}
    return {"seq": recorded.seq, "at": recorded.at.isoformat(), **_body(event), **more}


def unflat(body: dict[str, Any]) -> Recorded:
    """Return a stored event from the one JSON object that it travels as."""
    rest = {name: value for name, value in body.items() if name not in ("seq", "at")}
    if rest["type"] == "session.context":
        data: dict[str, Any] = rest.pop("data")
        rest |= {"reason": data["reason"], "context": data["context"], "set_name": data.get("setName")}
    if rest["type"] == "message.removed":
        rest["seq"] = rest.pop("removed")
    return Recorded(body["seq"], datetime.fromisoformat(body["at"]), EVENT.adapter.validate_python(rest))


def wire(event: WatchEvent) -> dict[str, Any]:
    """Return anything that a watcher sees as one JSON object."""
    if isinstance(event, Recorded):
        return flat(event)
    if isinstance(event, Delta):
        return {"turn": event.turn, "text": event.text, "kind": event.kind, "type": event.type}
    if isinstance(event, ToolProgress):
        return asdict(event)
    if isinstance(event, Missed):
        return {"after": event.after, "type": event.type}
    if isinstance(event, SessionDeleted):
        return {"type": event.type}
    return _body(event)


def unwire(body: dict[str, Any]) -> WatchEvent:
    """Return what a watcher sees from the one JSON object that it travels as."""
    if body["type"] == "reply.delta":
        return Delta(body["turn"], body["text"], body["kind"])
    if body["type"] == "tool.progress":
        return ToolProgress(body["turn"], body["call_id"], body["progress"], body["total"], body["message"])
    if body["type"] == "missed":
        return Missed(body["after"])
    if body["type"] == "session.deleted":
        return SessionDeleted()
    return unflat(body) if "seq" in body else _event(body)


def _event(body: dict[str, Any]) -> SessionContext:
    """Return a working context that is not in the log: the one that a watcher begins with."""
    data = body["data"]
    context = {name: tuple(items) for name, items in data["context"].items()}
    return SessionContext(reason=data["reason"], context=context, set_name=data.get("setName"))


def _body(event: Event) -> dict[str, Any]:
    if isinstance(event, SessionContext):
        named = {} if event.set_name is None else {"setName": event.set_name}
        context = {name: list(items) for name, items in event.context.items()}
        return {"type": event.type, "data": {"reason": event.reason, "context": context, **named}}
    if isinstance(event, MessageRemoved):
        stored = EVENT.adapter.dump_python(event, mode="json")
        return {"removed": stored.pop("seq"), **stored}
    return EVENT.adapter.dump_python(event, mode="json")


FlatEvent = Annotated[
    Recorded,
    BeforeValidator(lambda value: unflat(cast("dict[str, Any]", value)) if isinstance(value, dict) else value),
    PlainSerializer(flat, return_type=dict[str, Any]),
    # The union of them all is part of the API's description: `server/event_schema.py`.
    WithJsonSchema({"$ref": "#/components/schemas/StoredEvent"}),
]
