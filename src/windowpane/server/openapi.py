"""What the API's description says beyond its routes: an example for every operation, and which leads to which.

A link says that what one operation answers names something for another: the id of a new session, the number of a turn,
the name of an agent. Programs that explore an API follow them, and so do people.
"""

from collections.abc import Iterator, Mapping
from typing import Any

SESSION = "ses_0123456789abcdefghjkmnpqrs"

PARAMETERS: Mapping[str, Any] = {
    "agent": "guide",
    "session_id": SESSION,
    "turn": 1,
    "type": "rule",
    "name": "answer-briefly",
    "prompt": "core",
    "server": "notes",
    "path": "/srv/notes.md",
    "model": "guide",
    "with": 2,
    "listed": "items",
    "message": "How do I add a rule?",
    "q": "add a rule",
    "completion_id": "chatcmpl-ses_0123456789abcdefghjkmnpqrs_1-12",
    "response_id": "resp_ses_0123456789abcdefghjkmnpqrs_1-12",
    "conversation_id": "ses_0123456789abcdefghjkmnpqrs",
}
"""Examples of parameters in paths and of those that are required."""

BODIES: Mapping[str, Any] = {
    "add_session_item": {"type": "rule", "name": "answer-briefly"},
    "apply_suggestion": {"ref": {"type": "reference", "name": "folders"}, "settings": {"include": "agent"}},
    "count_message_tokens": {"model": "guide", "messages": [{"role": "user", "content": "How do I add a rule?"}]},
    "create_agent": {"name": "helper", "copy_of": "guide"},
    "create_conversation": {"metadata": {"agent": "guide"}},
    "create_embeddings": {"model": "local", "input": "How do I add a rule?"},
    "create_items": {"items": [{"role": "user", "content": "How do I add a rule?"}]},
    "create_message": {
        "model": "guide",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "How do I add a rule?"}],
    },
    "create_session": {"agent": "guide", "name": "Invoices", "settings": {"mode": "thinking"}},
    "create_test": {"name": "invoices"},
    "decide": {"decisions": {"call_1": "allow_once"}},
    "evaluate_agent": {
        "labels": [{"message": "How do I add a rule?", "must": [{"type": "reference", "name": "folders"}]}]
    },
    "fetch_page": {"url": "https://example.org/"},
    "fork_session": {"turn": 2, "name": "Another try"},
    "import_session": {
        "id": SESSION,
        "exported_at": "2026-01-02T03:04:05Z",
        "events": [
            {
                "seq": 1,
                "at": "2026-01-02T03:04:05Z",
                "event": {
                    "type": "session.created",
                    "agent": "guide",
                    "owner": "local",
                    "name": "Imported",
                    "settings": {},
                    "items": [],
                },
            },
            {
                "seq": 2,
                "at": "2026-01-02T03:04:06Z",
                "event": {"type": "message.added", "role": "user", "content": "Hello"},
            },
        ],
        "blobs": {},
    },
    "log_in": {"token": "TOKEN"},
    "preview": {"content": "How do I add a rule?"},
    "promote_observed": {"paths": ["/srv/notes.md"]},
    "push_page": {"url": "https://example.org/", "title": "Example", "text": "The text of the page."},
    "put_provider_key": {"key": "KEY"},
    "rename_agent": {"name": "helper"},
    "replay_turn": {"search": {"preset": "aggressive"}},
    "search_agent_items": {"query": "How do I add a rule?"},
    "send_message": {"content": "How do I add a rule?"},
    "share_folder": {"path": "/srv/project"},
    "tune_agent": {"labels": []},
    "update_session": {"name": "Invoices", "setContext": {"setName": "ports", "items": ["8470"], "mode": "merge"}},
}

ANSWERS: Mapping[str, Any] = {
    "list_agents": {
        "agents": [
            {
                "name": "guide",
                "description": "Explains Windowpane.",
                "model": "echo",
                "rules": 5,
                "references": 7,
                "servers": 1,
                "problems": 0,
                "questions": ["How do I add a rule?"],
            }
        ]
    },
    "list_roots": {"roots": ["/srv"], "offered": None},
    "list_sessions": {"sessions": [], "cursor": None},
}
"""Examples of answers, for operations that take nothing."""

MAKING_SESSIONS = ("create_session", "import_session", "fork_session")
MAKING_TURNS = ("send_message", "retry_turn")


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI description with examples and links."""
    operations = {operation["operationId"]: operation for operation in _operations(schema)}
    for name, operation in operations.items():
        _add_examples(name, operation)
    for name, operation in operations.items():
        links = dict(_links(name, operations))
        if links:
            answer = next(response for status, response in operation["responses"].items() if status.startswith("2"))
            answer["links"] = links
    return schema


def _operations(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path in schema["paths"].values():
        yield from path.values()


def _add_examples(name: str, operation: dict[str, Any]) -> None:
    for parameter in operation.get("parameters", ()):
        known = {"example", "examples"} & {*parameter, *parameter.get("schema", {})}
        if parameter.get("required") and parameter["name"] in PARAMETERS and not known:
            parameter["example"] = PARAMETERS[parameter["name"]]
    if name in BODIES:
        operation["requestBody"]["content"]["application/json"]["example"] = BODIES[name]
    if name in ANSWERS:
        operation["responses"]["200"]["content"]["application/json"]["example"] = ANSWERS[name]


def _links(name: str, operations: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if name in MAKING_SESSIONS:
        yield from _to(operations, {"session_id": "$response.body#/id"}, {"turn": "1"})
    elif name in MAKING_TURNS:
        given = {"session_id": "$request.path.session_id", "turn": "$response.body#/turn"}
        yield from _to(operations, given)
    elif name == "list_agents":
        yield from _to(operations, {"agent": "$response.body#/agents/0/name"})
    elif name == "create_agent_item":
        item = {"type": "$response.body#/type", "name": "$response.body#/name"}
        yield from _to(operations, {"agent": "$request.path.agent", **item}, {"If-Match": "*"})


def _to(
    operations: Mapping[str, Any], given: Mapping[str, str], beside: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Return links to the operations whose paths need exactly these parameters."""
    for name, operation in operations.items():
        parameters = operation.get("parameters", ())
        needed = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
        known = {parameter["name"] for parameter in parameters}
        if needed and needed == set(given):
            more = {key: value for key, value in (beside or {}).items() if key in known}
            yield name, {"operationId": name, "parameters": {**given, **more}}
