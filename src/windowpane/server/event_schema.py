"""Events in the API's description: one schema for each type of event, and a union of them by `type`.

`StoredEvent` is what the log of a session holds, `WatchedEvent` everything that a stream of a session can send, and
`AgentEvent` what a stream of an agent can send. The description of an export has the stored events without their
place in the log; theirs is added here, and the two whose form on the wire differs are given it (`api/wire.py`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import TypeAdapter

from windowpane.context.events import Delta, Event, MessageRemoved, Missed, SessionContext, SessionDeleted, ToolProgress
from windowpane.server.routes.agent_events import AgentEvent

Schema = dict[str, Any]

COMPONENTS = "#/components/schemas/"
PLACE: Schema = {
    "seq": {"type": "integer", "title": "Seq", "description": "The event's position in the log, counted from 1."},
    "at": {"type": "string", "format": "date-time", "title": "At", "description": "When it was written."},
}
"""What every stored event says beside its own fields."""
LOGGED = ("actor", "marks")
"""What a working context says when it is stored, and not when a watcher begins with it."""


def with_events(schema: Schema) -> Schema:
    """Return an OpenAPI description with the schemas of events."""
    known: Schema = schema["components"]["schemas"]
    stored = {f"{event.__name__}Event": _stored(event, known) for event in get_args(Event)}
    sent = {f"{event.__name__}Event": _whole(_form(event)) for event in (Delta, ToolProgress, Missed, SessionDeleted)}
    agents = _form(AgentEvent)["$defs"]
    told = {event.__name__: _whole(agents[event.__name__]) for event in get_args(AgentEvent)}
    unions = {
        "StoredEvent": _union("An event in the log of a session.", stored),
        "WatchedEvent": _union(
            "What a stream of a session sends: stored events, text while it is written, the progress of tools, and "
            "news about the stream. "
            "`session.context` with reason `load` is not stored and has neither `seq` nor `at`.",
            stored | sent,
        ),
        "AgentEvent": _union("What a stream of an agent sends.", told),
    }
    found = agents | known | stored | sent | told | unions
    schema["components"]["schemas"] = {name: found[name] for name in sorted(found)}
    return schema


def _stored(event: type, known: Schema) -> Schema:
    name = event.__name__
    own: Schema = known.get(f"{name}-Output") or known[name]
    properties: Schema = dict(own["properties"])
    if event is SessionContext:
        data = {
            "reason": properties["reason"],
            "context": properties["context"],
            "setName": {"type": "string", "title": "Set Name", "description": "The set that changed, if it was one."},
        }
        inner = {"type": "object", "properties": data, "required": ["reason", "context"]}
        properties = {"type": properties["type"], "data": inner, **{name: properties[name] for name in LOGGED}}
    if event is MessageRemoved:
        properties = {"removed": properties.pop("seq"), **properties}
    optional = (*PLACE, *LOGGED) if event is SessionContext else ()
    return _whole({**own, "title": f"{name}Event", "properties": {**PLACE, **properties}}, optional)


def _whole(form: Schema, optional: Iterable[str] = ()) -> Schema:
    """Return a schema that says which fields are always there."""
    always = [name for name in form["properties"] if name not in optional]
    return {name: value for name, value in form.items() if name != "$defs"} | {"required": always}


def _form(event: Any) -> Schema:
    return TypeAdapter[Any](event).json_schema(ref_template=f"{COMPONENTS}{{model}}", mode="serialization")


def _union(about: str, variants: Mapping[str, Schema]) -> Schema:
    return {
        "description": about,
        "oneOf": [{"$ref": f"{COMPONENTS}{name}"} for name in variants],
        "discriminator": {
            "propertyName": "type",
            "mapping": {
                one["properties"]["type"]["const"]: f"{COMPONENTS}{name}"
                for name, one in sorted(variants.items(), key=lambda pair: pair[1]["properties"]["type"]["const"])
            },
        },
    }
