"""The description of the API says what every event is: each that a server sends is exactly one of a union."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

import anyio
import httpx2
from jsonschema import Draft202012Validator

from patience import PATIENCE_S
from server.place import events_in, new_session, served
from windowpane.api.wire import unflat, wire
from windowpane.context.events import (
    AgentChanged,
    ApprovalDecided,
    ApprovalRequested,
    CallEnded,
    CallSent,
    CancelRequested,
    Delta,
    Erased,
    Event,
    FetchedAdded,
    FetchedCleared,
    FileMark,
    HistoryCleared,
    ItemAdded,
    ItemReadmitted,
    ItemRemoved,
    MessageAdded,
    MessageRemoved,
    Missed,
    ModelReplied,
    ModelSampled,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    ReferenceAdded,
    ReferenceRemoved,
    RequestBuilt,
    ServerArrived,
    SessionContext,
    SessionCreated,
    SessionItem,
    SessionUpdated,
    SummaryMade,
    ToolProgress,
    ToolReturned,
    TurnError,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.fetched import Fetched
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import OwnReference, rule_ref, tool_ref
from windowpane.context.messages import Source, Step, ToolCall, ToolQuestion, ToolResult, Usage
from windowpane.context.summary import Summary
from windowpane.testing import World

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CALL = ToolCall("call_1", "notes__read", "{}", tool_ref("notes", "read"))
CREATED = SessionCreated(agent="pane", owner="local", settings={}, items=(SessionItem(rule_ref("tone"), "always"),))
EVENTS: tuple[Event, ...] = (
    SessionUpdated(changes={"name": "Photos", "mode": None}, actor="user"),
    AgentChanged(agent="other", items=(SessionItem(rule_ref("tone"), "always"),), servers=("notes",)),
    ItemAdded(item=SessionItem(rule_ref("brief"), "manual"), actor="model"),
    ItemRemoved(ref=rule_ref("brief"), actor="user"),
    ItemReadmitted(ref=rule_ref("brief"), actor="user"),
    ReferenceAdded(
        reference=OwnReference(name="zoo", file="zoo.txt", blob=BlobHash("c" * 64), characters=4), actor="user"
    ),
    ReferenceRemoved(name="zoo", actor="user"),
    ServerArrived(server="notes", items=(SessionItem(tool_ref("notes", "read"), "always"),)),
    MessageAdded(role="user", content="Hello", tokens=1, source="{}"),
    MessageRemoved(seq=6, tokens=1, erased=(BlobHash("b" * 64),), drops_summary=True),
    TurnStarted(turn=1, message="Hello", key="k", tokens=1),
    RequestBuilt(turn=1, request=BlobHash("a" * 64), catalog=None),
    CallSent(
        id="c1",
        turn=1,
        step=1,
        attempt=1,
        purpose="answer",
        model="openai:gpt-4o",
        head=BlobHash("h"),
        body=BlobHash("b"),
        sha256="0",
        size=2,
    ),
    CallEnded(id="c1", turn=1, outcome="complete", status=200, usage=Usage(1, 2)),
    ModelReplied(turn=1, step=Step(text="Let me see.", tool_calls=(CALL,)), tokens=3),
    ApprovalRequested(turn=1, calls=(CALL,)),
    ApprovalDecided(turn=1, decisions={"call_1": "allow_once"}),
    QuestionAsked(
        turn=1,
        question=ToolQuestion(
            id="q1",
            call_id="call_1",
            server="notes",
            kind="form",
            message="Which?",
            schema={"type": "object", "properties": {"name": {"type": "string"}}},
        ),
    ),
    QuestionAnswered(turn=1, question_id="q1", action="accept", content={"name": "a"}),
    ModelSampled(turn=1, question_id="q2", step=Step(text="Short.")),
    ToolReturned(turn=1, result=ToolResult("call_1", "nothing", is_error=True)),
    CancelRequested(turn=1),
    TurnFinished(
        turn=1,
        outcome="failed",
        error=TurnError(code="model_failed", message="It failed."),
        sources=(Source(title="folders", score=0.9, ref=rule_ref("tone")),),
        related=("modes",),
    ),
    SummaryMade(summary=Summary(overview="They met.", through_seq=8)),
    FetchedAdded(items=(Fetched(kind="page", url="https://example.org/", content="Text"),), actor="user"),
    FetchedCleared(kind="page"),
    SessionContext(
        reason="changed",
        context={"files": ("/srv/a.md",)},
        set_name="files",
        actor="model",
        marks={"/srv/a.md": FileMark("0" * 64, AT)},
    ),
    HistoryCleared(turns=1),
    Erased(),
)


async def test_every_event_that_a_watcher_is_sent_is_one_of_the_union_in_the_description(
    world: World, client: httpx2.AsyncClient
) -> None:
    session = await new_session(client)
    document = (await client.get("/openapi.json")).json()
    # A server that reads of a cleared history, or of cleared pages, erases what is left of them.
    cleared = [event for event in EVENTS if isinstance(event, HistoryCleared | FetchedCleared)]
    await world.store.append(SessionId(session), [event for event in EVENTS if event not in cleared])

    async with client.stream("GET", f"/api/sessions/{session}/events?after=0") as response:
        events = events_in(response)
        with anyio.fail_after(PATIENCE_S):
            sent = [(await anext(events)).data for _ in range(len(EVENTS) - len(cleared) + 2)]
            await client.delete(f"/api/sessions/{session}")
            sent.append((await anext(events)).data)

    sent += [*(wire(Recorded(9, AT, event)) for event in cleared), wire(Delta(1, "Hi", "thinking")), wire(Missed(3))]
    sent += [wire(ToolProgress(1, "call_1", 1, 2, "half")), wire(ToolProgress(1, "call_1", 0.5))]
    assert [errors(document, "WatchedEvent", body) for body in sent] == [[]] * len(sent)
    union = document["components"]["schemas"]["WatchedEvent"]
    assert {body["type"] for body in sent} == set(union["discriminator"]["mapping"])
    assert errors(document, "WatchedEvent", {"type": "turn.started", "seq": 1, "at": AT.isoformat()})
    assert errors(document, "WatchedEvent", {"type": "unheard.of", "seq": 1, "at": AT.isoformat()})


async def test_the_log_has_no_event_that_this_test_does_not_send() -> None:
    assert {type(event) for event in (CREATED, *EVENTS)} == set(get_args(Event))


async def test_a_stored_event_is_the_same_after_its_way_over_the_wire() -> None:
    stored = [Recorded(seq, AT, event) for seq, event in enumerate((CREATED, *EVENTS), 1)]

    assert [unflat(wire(one)) for one in stored] == stored


async def test_a_turns_record_has_its_events_by_the_same_description(world: World) -> None:
    world.says("Hello.")
    async with served(world) as client:
        session = await new_session(client)
        document = (await client.get("/openapi.json")).json()
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Hello"})

        turn = (await client.get(f"/api/sessions/{session}/turns/1")).json()

    assert [event["type"] for event in turn["events"]] == [
        "turn.started",
        "request.built",
        "model.replied",
        "turn.finished",
    ]
    assert [errors(document, "StoredEvent", event) for event in turn["events"]] == [[]] * 4
    assert document["components"]["schemas"]["TurnRecord"]["properties"]["events"]["items"] == {
        "$ref": "#/components/schemas/StoredEvent"
    }
    streamed = document["paths"]["/api/sessions/{session_id}/events"]["get"]["responses"]["200"]["content"]
    data = streamed["text/event-stream"]["itemSchema"]["properties"]["data"]
    assert data["contentSchema"] == {
        "anyOf": [
            {"$ref": "#/components/schemas/WatchedEvent"},
            {"$ref": "#/components/schemas/ProblemDocument"},
        ]
    }


def errors(document: dict[str, Any], name: str, body: object) -> list[str]:
    """Return what is wrong with a body by one schema of a description."""
    validator: Any = Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    )
    return [error.message for error in validator.iter_errors(body)]
