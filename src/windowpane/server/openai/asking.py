"""What the two ways of asking have in common: tools, session, text, and what cannot be asked for."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, cast

from fastapi import Header
from pydantic import BeforeValidator, Field, JsonValue

from windowpane.context.items import CLIENT_SERVER, Tool
from windowpane.server.openai.errors import UnsupportedError

SESSION = "Windowpane-Session"

SessionHeader = Annotated[
    str | None,
    Header(
        alias=SESSION,
        description="The session that the request belongs to: its id, or a name of your own, which begins one. "
        "`metadata.session` says the same.",
    ),
]
KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="In a session, sending the same message again with the same key joins the first turn.",
    ),
]


def _storable(body: Any) -> Any:
    """Refuse what other programs could not read back: half characters, and numbers that are none or too large."""
    if not isinstance(body, dict):
        return body
    try:
        as_doubles: object = json.loads(json.dumps(body), parse_int=float)
        json.dumps([body, as_doubles], ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return cast("dict[str, Any]", body)


Storable = BeforeValidator(_storable)
Metadata = Annotated[dict[str, JsonValue] | None, Field(description="`session` names the session.")]
FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


def tool_of(name: str, description: str | None, parameters: Mapping[str, Any] | None) -> Tool:
    """Return a tool that the client runs itself."""
    return Tool(
        server=CLIENT_SERVER,
        name=name,
        description=description or "",
        parameters=parameters or {"type": "object", "properties": {}},
        include="manual",
        permission="not_required",
    )


def offered(tools: Sequence[Tool], tool_choice: JsonValue) -> tuple[Tool, ...]:
    """Return the tools that the model may call.

    Raises:
        UnsupportedError: two tools have one name, or one of them is asked for by name.
    """
    names = [tool.name for tool in tools]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UnsupportedError("tools", f"Two tools are named {twice!r}.", "invalid_value")
    if tool_choice not in (None, "auto", "none"):
        raise UnsupportedError("tool_choice", "The agent decides about tools: use 'auto' or 'none'.")
    return () if tool_choice == "none" else tuple(tools)


def session_of(header: str | None, metadata: Mapping[str, JsonValue] | None) -> str | None:
    """Return the session that a request names, or None.

    Raises:
        UnsupportedError: what it names cannot be a session.
    """
    named = header if header is not None else (metadata or {}).get("session")
    if not isinstance(named, str | None):
        raise UnsupportedError("metadata.session", "A session is named by a text.", "invalid_type")
    return named


def refuse(given: Mapping[str, Any], allowed: Mapping[str, Sequence[Any]]) -> None:
    """Refuse what this server cannot do, rather than answer as if it had not been asked for.

    Raises:
        UnsupportedError: a parameter has a value that it may not have here.
    """
    for name, values in allowed.items():
        value = given.get(name)
        if value is not None and value not in values:
            raise UnsupportedError(name, f"Unsupported value: {name!r} cannot be used here with this value.")


def joined(texts: Iterable[str]) -> str:
    """Return texts as one."""
    return "\n\n".join(text for text in texts if text)
