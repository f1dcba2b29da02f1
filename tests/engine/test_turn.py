"""How a turn runs, fails, waits, stops and survives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from patience import PATIENCE_S
from windowpane.context.events import (
    ApprovalDecided,
    ApprovalRequested,
    CancelRequested,
    Delta,
    Live,
    ModelReplied,
    Recorded,
    RequestBuilt,
    ToolReturned,
    TurnError,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import tool_ref
from windowpane.context.messages import AssistantMessage, ErrorMessage, Step, ToolCall, ToolResult, Usage
from windowpane.engine import Engine
from windowpane.errors import (
    ApprovalPendingError,
    ContextTooLargeError,
    InvalidInputError,
    KeyReusedError,
    ModelStreamBrokenError,
    ModelUnavailableError,
    NothingToApproveError,
    NoTurnRunningError,
    SessionBusyError,
    SessionNotFoundError,
)
from windowpane.models.scripted import Call, Reply
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, stored, tool
from windowpane.tools.functions import FunctionTool


@pytest.mark.spec("S0.58", "S0.59", "S4.51")
async def test_a_turn_yields_its_events_in_order_and_the_words_as_they_come(world: World) -> None:
    heard, said = anyio.Event(), ""
    world.says(Reply("Good day.", before_end=heard))
    events: list[Live] = []

    async with world.engine() as engine:
        session = await engine.sessions.create()
        async for event in engine.turn(session.id, "Hi"):
            events.append(event)
            said += event.text if isinstance(event, Delta) else ""
            if said == "Good day.":
                # The model comes to an end only when all of its words were heard.
                heard.set()

    kinds = [event.event.type if isinstance(event, Recorded) else event.type for event in events]
    # Words that follow one another quickly may come as one.
    assert [kind for kind, _ in groupby(kinds)] == [
        "turn.started",
        "request.built",
        "reply.delta",
        "model.replied",
        "turn.finished",
    ]
    assert stored(events)[0] == TurnStarted(turn=1, message="Hi", tokens=1)
    assert stored(events)[-1] == TurnFinished(turn=1, outcome="completed")


async def test_the_last_answer_and_the_end_of_its_turn_are_stored_in_one_step(world: World) -> None:
    world.says("Good day.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = await drain(engine.turn(session.id, "Hi"))

    replied, finished = [event for event in events if isinstance(event, Recorded)][-2:]
    assert (replied.event.type, finished.event.type) == ("model.replied", "turn.finished")
    assert replied.at == finished.at


async def test_white_space_and_code_of_the_user_arrive_byte_for_byte(world: World) -> None:
    world.says("Yes.")
    message = "\n\tdef f():\r\n\t\treturn  1   \n\n\u00a0\u200b end \x00 "

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, message))
        user = (await engine.conversations.messages(session.id))[0]

    assert getattr(user, "content", None) == message
    assert world.model.calls[0].messages[-1].content == message


async def test_a_failed_model_call_leaves_the_message_an_error_and_the_request(world: World) -> None:
    world.says(Reply("Half an ans", error=ModelStreamBrokenError("it broke", partial="Half an ans")), "Whole.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = await drain(engine.turn(session.id, "Hi"))
        user, error = await engine.conversations.messages(session.id)
        await engine.past.context(session.id, 1)
        await drain(engine.turn(session.id, "Once more"))

    assert stored(events)[-1] == TurnFinished(
        turn=1,
        outcome="failed",
        error=TurnError(code="model_stream_broken", message="it broke", partial="Half an ans"),
    )
    assert user.role == "user"
    assert isinstance(error, ErrorMessage)
    assert (error.code, error.content, error.partial, error.request is not None) == (
        "model_stream_broken",
        "it broke",
        "Half an ans",
        True,
    )
    sent = [(message.role, message.content) for message in world.model.calls[1].messages if message.role != "system"]
    assert sent == [("user", "Hi"), ("user", "Once more")]


async def test_a_tool_call_waits_for_a_person_and_then_the_same_request_goes_on(world: World) -> None:
    world.toolbox.put("files", [tool("wipe", "{path} is gone")])
    world.says(Reply(calls=(Call("files__wipe", '{"path": "a"}', "c1"),)), "Gone.")
    call = ToolCall("c1", "files__wipe", '{"path": "a"}', tool_ref("files", "wipe"))

    async with world.engine() as engine:
        session = await engine.sessions.create()
        asked = stored(await drain(engine.turn(session.id, "Wipe a")))
        with pytest.raises(ApprovalPendingError, match=r"turn 1 waits for a decision about files:wipe"):
            await drain(engine.turn(session.id, "Hurry"))
        went_on = stored(await drain(engine.approve(session.id, {"c1": "allow_once"})))

    assert asked[-1] == ApprovalRequested(turn=1, calls=(call,))
    assert went_on[0] == ApprovalDecided(turn=1, decisions={"c1": "allow_once"})
    assert isinstance(went_on[1], ToolReturned)
    assert (went_on[1].result.content, went_on[1].result.is_error) == ("a is gone", False)
    assert [type(event) for event in went_on[2:]] == [ModelReplied, TurnFinished]
    assert not any(isinstance(event, RequestBuilt) for event in went_on)
    assert world.model.calls[0].tools == world.model.calls[1].tools


async def test_a_denied_call_is_not_run_and_the_model_is_told(world: World) -> None:
    world.toolbox.put("files", [tool("wipe")])
    world.says(Reply(calls=(Call("files__wipe", "{}", "c1"),)), "Then not.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Wipe"))
        events = stored(await drain(engine.approve(session.id, {"c1": "deny"})))

    result = next(event.result for event in events if isinstance(event, ToolReturned))
    assert result == ToolResult(
        "c1", "The user denied this call. Do not try it again unless the user asks for it.", is_error=True
    )


async def test_allowing_for_the_session_asks_once_and_only_for_that_tool(world: World) -> None:
    world.toolbox.put("files", [tool("read"), tool("wipe")])
    read, wipe = Call("files__read"), Call("files__wipe")
    world.says(Reply(calls=(read,)), Reply(calls=(read,)), Reply(calls=(wipe,)), "Never.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Go"))
        waiting = await _waiting(engine, session.id)
        events = stored(await drain(engine.approve(session.id, {waiting[0].id: "allow_session"})))

    asked = [event for event in events if isinstance(event, ApprovalRequested)]
    assert [call.ref for event in asked for call in event.calls] == [tool_ref("files", "wipe")]


async def test_a_decision_never_carries_over_to_a_later_call_with_the_same_id(world: World) -> None:
    world.toolbox.put("files", [tool("wipe")])
    world.says(Reply(calls=(Call("files__wipe", "{}", "c1"),)), Reply(calls=(Call("files__wipe", "{}", "c1"),)))

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Wipe"))
        events = stored(await drain(engine.approve(session.id, {"c1": "allow_once"})))

    assert isinstance(events[-1], ApprovalRequested)


@pytest.mark.parametrize(
    ("setting", "permission", "asked"),
    [
        ("always", "not_required", True),
        ("always", "required", True),
        ("never", "required", False),
        ("tool", "required", True),
        ("tool", "not_required", False),
    ],
)
async def test_the_session_decides_when_calls_wait(world: World, setting: str, permission: str, asked: bool) -> None:
    world.toolbox.put("files", [tool("read", permission=permission)])
    world.says(Reply(calls=(Call("files__read"),)), "Read.")

    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"tool_permission": setting})
        events = stored(await drain(engine.turn(session.id, "Read")))

    assert any(isinstance(event, ApprovalRequested) for event in events) is asked


async def test_calls_that_need_no_approval_run_while_the_others_wait(world: World) -> None:
    world.toolbox.put("files", [tool("read", "text", permission="not_required"), tool("wipe")])
    world.says(Reply(calls=(Call("files__wipe", "{}", "c1"), Call("files__read", "{}", "c2"))), "Done.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = stored(await drain(engine.turn(session.id, "Both")))

    assert [event.type for event in events[-2:]] == ["tool.returned", "approval.requested"]
    assert [call.id for call in cast("ApprovalRequested", events[-1]).calls] == ["c1"]


@pytest.mark.parametrize(
    ("decisions", "why"),
    [
        ({"c9": "deny"}, "these calls do not wait for a decision: c9; these do: c1"),
        ({}, "no decision was given; these calls wait: c1"),
    ],
)
async def test_a_wrong_decision_changes_nothing(world: World, decisions: dict[str, str], why: str) -> None:
    world.toolbox.put("files", [tool("wipe")])
    world.says(Reply(calls=(Call("files__wipe", "{}", "c1"),)))

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Wipe"))
        before = await engine.sessions.get(session.id)
        with pytest.raises(NothingToApproveError, match=why):
            await drain(engine.approve(session.id, decisions))  # pyright: ignore[reportArgumentType] - wrong on purpose
        after = await engine.sessions.get(session.id)

    assert before == after


async def test_a_decision_without_a_question_is_refused(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        with pytest.raises(NothingToApproveError, match="no tool call of this session waits"):
            await drain(engine.approve(session.id, {"c1": "deny"}))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("files__nope"), "There is no tool named 'files__nope'. Use one of the tools you were given."),
        (
            Call("files__read", "{'a': 1"),
            "The arguments are not valid JSON (Expecting property name enclosed in double quotes: line 1 column 2 "
            "(char 1)). Send them again as one JSON object.",
        ),
        (Call("files__read", "[1]"), "The arguments must be one JSON object."),
    ],
)
async def test_a_call_that_cannot_be_made_is_answered_and_the_turn_goes_on(world: World, call: Call, told: str) -> None:
    world.toolbox.put("files", [tool("read", permission="not_required")])
    world.says(Reply(calls=(call,)), "Sorry.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = stored(await drain(engine.turn(session.id, "Read")))

    results = [event.result for event in events if isinstance(event, ToolReturned)]
    assert [(result.content, result.is_error) for result in results] == [(told, True)]
    assert events[-1] == TurnFinished(turn=1, outcome="completed")


async def test_a_tool_that_fails_is_an_error_result_and_not_a_failed_turn(world: World) -> None:
    world.toolbox.put("files", [tool("read", "{missing}", permission="not_required")])
    world.says(Reply(calls=(Call("files__read"),)), "It failed.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = stored(await drain(engine.turn(session.id, "Read")))

    results = [event.result for event in events if isinstance(event, ToolReturned)]
    assert [(result.content, result.is_error) for result in results] == [("KeyError: 'missing'", True)]


async def test_a_huge_tool_result_is_cut_to_the_room_that_is_left_and_says_so(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\ncontext_window: 2000\nmax_output_tokens: 200\n")
    world.toolbox.put("files", [tool("read", "word " * 20000, permission="not_required")])
    world.says(Reply(calls=(Call("files__read"),)), "Long.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Read"))

    result = world.model.calls[1].messages[-1]
    assert result.role == "tool"
    assert result.content.endswith("[… the rest of this result did not fit the context window]")
    assert len(result.content) < 10000


async def test_a_turn_makes_at_most_max_chat_turns_model_calls(world: World) -> None:
    world.toolbox.put("files", [tool("read", permission="not_required")])
    world.says(*[Reply(calls=(Call("files__read"),)) for _ in range(5)])

    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"max_chat_turns": 3})
        events = stored(await drain(engine.turn(session.id, "Read")))

    assert len(world.model.calls) == 3
    finished = cast("TurnFinished", events[-1])
    assert finished.error == TurnError(
        code="too_many_model_calls",
        message="the turn stopped after 3 model calls; raise `max_chat_turns` to allow more",
    )


async def test_a_second_turn_at_once_gets_session_busy_or_waits_if_asked_to(world: World) -> None:
    gate = anyio.Event()
    world.says(Reply("Slow.", after=gate), "Quick.")
    ended: list[str] = []

    async with world.engine() as engine, anyio.create_task_group() as tasks:
        session = await engine.sessions.create()

        async def ask(message: str, wait_s: float) -> None:
            await drain(engine.turn(session.id, message, wait_s=wait_s))
            ended.append(message)

        tasks.start_soon(ask, "First", 0)
        await world.model.wait_for_calls(1)
        with pytest.raises(SessionBusyError, match="session busy"):
            await drain(engine.turn(session.id, "Second"))
        tasks.start_soon(ask, "Third", 60)
        gate.set()

    assert ended == ["First", "Third"]
    assert [call.messages[-1].content for call in world.model.calls] == ["First", "Third"]


async def test_an_answer_is_not_lost_when_the_listener_goes_away(world: World) -> None:
    gate = anyio.Event()
    world.says(Reply("The whole answer.", before_end=gate))

    async with world.engine() as engine:
        session = await engine.sessions.create()
        async with aclosing(engine.turn(session.id, "Hi")) as events:
            async for event in events:
                if isinstance(event, Delta):
                    break
        gate.set()
        await _finished(engine, session.id)
        answer = (await engine.conversations.messages(session.id))[-1]

    assert isinstance(answer, AssistantMessage)
    assert answer.model_reply.text == "The whole answer."


async def test_the_same_key_joins_the_first_turn_and_stores_the_message_once(world: World) -> None:
    world.says("Once.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        first = stored(await drain(engine.turn(session.id, "Hi", key="k1")))
        again = stored(await drain(engine.turn(session.id, "Hi", key="k1")))
        with pytest.raises(KeyReusedError, match="was used before for another message"):
            await drain(engine.turn(session.id, "Ho", key="k1"))
        session = await engine.sessions.get(session.id)

    assert again == first
    assert (session.turn_count, len(world.model.calls)) == (1, 1)


async def test_joining_an_old_turn_does_not_follow_the_one_that_runs_now(world: World) -> None:
    world.says("Once.", Reply("Slow.", before_end=anyio.Event()))

    async with world.engine() as engine:
        session = await engine.sessions.create()
        first = stored(await drain(engine.turn(session.id, "Hi", key="k1")))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain, engine.turn(session.id, "Slowly"))
            await world.model.wait_for_calls(2)
            assert stored(await drain(engine.turn(session.id, "Hi", key="k1"))) == first
            await engine.cancel(session.id)


async def test_a_retry_of_a_turn_whose_worker_died_is_told_so(world: World) -> None:
    async with world.engine(lease_s=0.2) as engine:
        session = await engine.sessions.create()
        await engine.store.append(session.id, [TurnStarted(turn=1, message="Lost", key="k1")])
        events = stored(await drain(engine.turn(session.id, "Lost", key="k1")))

    assert events == [
        TurnStarted(turn=1, message="Lost", key="k1"),
        TurnFinished(
            turn=1,
            outcome="interrupted",
            error=TurnError(code="interrupted", message="the server stopped in the middle of this turn; send it again"),
        ),
    ]


async def test_two_callers_with_one_key_at_once_run_one_turn(world: World) -> None:
    gate = anyio.Event()
    world.says(Reply("Once.", after=gate))
    heard: list[list[Live]] = []

    async with world.engine() as engine, anyio.create_task_group() as tasks:
        session = await engine.sessions.create()

        async def ask() -> None:
            heard.append(await drain(engine.turn(session.id, "Hi", key="k1", wait_s=60)))

        tasks.start_soon(ask)
        await world.model.wait_for_calls(1)
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        gate.set()

    assert heard[0] == heard[1] == heard[2]
    assert len(world.model.calls) == 1


async def test_cancelling_keeps_what_was_said_and_frees_the_session(world: World) -> None:
    said = anyio.Event()
    world.says(Reply("This far and", before_end=anyio.Event()), "Next.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_listen, engine.turn(session.id, "Go on"), said)
            await said.wait()
            await engine.cancel(session.id)
        state = await engine.sessions.get(session.id)
        answer = (await engine.conversations.messages(session.id))[-1]
        await drain(engine.turn(session.id, "Next?"))

    assert state.open_turn is None
    assert isinstance(answer, AssistantMessage)
    assert (answer.outcome, answer.model_reply.steps[0].finish_reason) == ("cancelled", "cancelled")
    assert answer.model_reply.text == "This far and"


async def test_a_turn_in_another_process_heeds_a_cancel(world: World, tmp_path: Path) -> None:
    world.store = SQLiteStore(tmp_path / "a.db")
    elsewhere = World(world.root, store=SQLiteStore(tmp_path / "a.db"))
    world.says(Reply("Never ending", before_end=anyio.Event()))

    async with world.engine() as engine, elsewhere.engine() as other:
        session = await engine.sessions.create()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain, engine.turn(session.id, "Go on"))
            await world.model.wait_for_calls(1)
            with pytest.raises(SessionBusyError):
                await drain(other.turn(session.id, "Me too"))
            await other.cancel(session.id)
        await _finished(other, session.id)
        answer = (await other.conversations.messages(session.id))[-1]

    assert isinstance(answer, AssistantMessage)
    assert answer.outcome == "cancelled"


async def test_a_waiting_turn_can_be_cancelled(world: World) -> None:
    world.toolbox.put("files", [tool("wipe")])
    world.says(Reply(calls=(Call("files__wipe"),)), "Fine.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Wipe"))
        await engine.cancel(session.id)
        await drain(engine.turn(session.id, "Something else"))
        with pytest.raises(NoTurnRunningError):
            await engine.cancel(session.id)

    assert [(m.role, m.content) for m in world.model.calls[1].messages if m.role != "system"] == [
        ("user", "Wipe"),
        ("user", "Something else"),
    ]


async def test_a_cancel_waits_for_a_decision_that_is_being_checked_and_may_be_refused(world: World) -> None:
    world.toolbox.put("files", [tool("wipe")])
    world.says(Reply(calls=(Call("files__wipe"),)))

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Wipe"))
        await engine.store.acquire(session.id, "who decides", 60)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.cancel, session.id)
            async with aclosing(engine.watch(session.id, after=0)) as events:
                async for event in events:
                    if isinstance(event, Recorded) and isinstance(event.event, CancelRequested):
                        break
            await anyio.wait_all_tasks_blocked()
            await engine.store.release(session.id, "who decides")
        answer = (await engine.conversations.messages(session.id))[-1]

    assert isinstance(answer, AssistantMessage)
    assert answer.outcome == "cancelled"


@pytest.mark.parametrize(
    ("returned", "given"),
    [
        ("half \ud83d, whole \ud83d\ude00", "half \ufffd, whole 😀"),
        (None, "The tool returned NoneType, which is not a text."),
    ],
)
async def test_a_tool_that_returns_what_cannot_be_kept_does_not_end_the_turn(
    world: World, returned: Any, given: str
) -> None:
    async def run(arguments: Mapping[str, Any]) -> str:
        return returned

    world.toolbox.put("files", [FunctionTool(name="read", run=run, permission="not_required")])
    world.says(Reply(calls=(Call("files__read"),)), "Done.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = stored(await drain(engine.turn(session.id, "Read")))

    assert [event.result.content for event in events if isinstance(event, ToolReturned)] == [given]
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].outcome == "completed"


async def test_a_pending_approval_survives_a_restart(world: World, tmp_path: Path) -> None:
    world.store = SQLiteStore(tmp_path / "a.db")
    world.toolbox.put("files", [tool("wipe", "gone")])
    world.says(Reply("First,", calls=(Call("files__wipe", "{}", "c1"),)))
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Wipe"))
        before = await engine.past.request(session.id, 1)

    again = World(world.root, store=SQLiteStore(tmp_path / "a.db"), toolbox=world.toolbox)
    again.says("Done.")
    async with again.engine() as engine:
        events = stored(await drain(engine.approve(session.id, {"c1": "allow_once"})))
        after = await engine.past.request(session.id, 1)

    assert events[-1] == TurnFinished(turn=1, outcome="completed")
    assert before == after
    assert again.model.calls[0].messages[: len(before.messages)] == before.messages
    assert [m.content for m in again.model.calls[0].messages[-2:]] == ["First,", "gone"]


async def test_a_turn_that_its_worker_left_behind_is_marked_interrupted_by_the_next(world: World) -> None:
    world.says("Well.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.store.append(session.id, [TurnStarted(turn=1, message="Lost")])
        events = stored(await drain(engine.turn(session.id, "Hello?")))
        messages = await engine.conversations.messages(session.id)

    assert events[0] == TurnFinished(
        turn=1,
        outcome="interrupted",
        error=TurnError(code="interrupted", message="the server stopped in the middle of this turn; send it again"),
    )
    assert [message.role for message in messages] == ["user", "error", "user", "assistant"]


async def test_a_turn_that_its_worker_left_behind_is_closed_while_somebody_watches(world: World) -> None:
    async with world.engine(lease_s=0.05) as engine:
        session = await engine.sessions.create()
        await engine.store.append(session.id, [TurnStarted(turn=1, message="Lost")])
        closed = None
        with anyio.fail_after(PATIENCE_S):
            async with aclosing(engine.watch(session.id)) as events:
                async for event in events:
                    if isinstance(event, Recorded):
                        closed = event.event
                        break
        state = await engine.sessions.get(session.id)

    assert closed == TurnFinished(
        turn=1,
        outcome="interrupted",
        error=TurnError(code="interrupted", message="the server stopped in the middle of this turn; send it again"),
    )
    assert state.open_turn is None


async def test_a_turn_that_its_worker_left_behind_is_closed_soon_after_somebody_looks(world: World) -> None:
    async with world.engine(lease_s=0.05) as engine:
        session = await engine.sessions.create()
        await engine.store.append(session.id, [TurnStarted(turn=1, message="Lost")])
        looked_at = await engine.sessions.get(session.id)
        with anyio.fail_after(PATIENCE_S):
            async with aclosing(engine.store.subscribe(session.id, after=looked_at.seq)) as entries:
                closed = await anext(entries)

    assert closed.event == TurnFinished(
        turn=1,
        outcome="interrupted",
        error=TurnError(code="interrupted", message="the server stopped in the middle of this turn; send it again"),
    )


async def test_closing_the_engine_marks_a_running_turn_interrupted(world: World) -> None:
    said = anyio.Event()
    world.says(Reply("Half", before_end=anyio.Event()))
    async with world.engine() as engine:
        session = await engine.sessions.create()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_listen, engine.turn(session.id, "Hi"), said)
            await said.wait()
            tasks.cancel_scope.cancel()

    async with World(world.root, store=world.store).engine() as engine:
        state = await engine.sessions.get(session.id)
        answer = (await engine.conversations.messages(session.id))[-1]

    assert state.open_turn is None
    assert isinstance(answer, AssistantMessage)
    assert (answer.outcome, answer.model_reply.text) == ("interrupted", "Half")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("", "the message is empty"),
        (" \n\t ", "the message is empty"),
        ("x" * 1_000_001, "the message has 1,000,001 characters and 1,000,000 is the limit"),
        ("bad \ud800 half", "not valid Unicode at character 4"),
    ],
)
async def test_a_message_that_cannot_be_used_changes_nothing(world: World, message: str, why: str) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        with pytest.raises(InvalidInputError, match=why):
            await drain(engine.turn(session.id, message))
        assert await engine.sessions.get(session.id) == session


async def test_a_turn_in_a_session_that_does_not_exist_is_refused(world: World) -> None:
    async with world.engine() as engine:
        with pytest.raises(SessionNotFoundError, match="no session 'ses_none'"):
            await drain(engine.turn(SessionId("ses_none"), "Hi"))


async def test_an_unexpected_error_becomes_an_error_message_and_frees_the_session(world: World) -> None:
    class Broken(MemoryStore):
        async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
            raise ZeroDivisionError

    world.store = Broken()
    world.toolbox.put("files", [tool("wipe")])
    world.says(Reply(calls=(Call("files__wipe", "{}", "c1"),)), "Never.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Wipe"))
        events = stored(await drain(engine.approve(session.id, {"c1": "allow_once"})))
        state = await engine.sessions.get(session.id)

    assert cast("TurnFinished", events[-1]).error == TurnError(
        code="internal", message="unexpected error; see the server log"
    )
    assert state.open_turn is None


async def test_prepare_gives_the_request_and_record_stores_the_reply(world: World) -> None:
    world.rule("tone", include="always")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        prepared = await engine.prepared.begin(session.id, "Hi")
        with pytest.raises(SessionBusyError):
            await drain(engine.turn(session.id, "Me too"))
        state = await engine.prepared.record(prepared, "Hello.", usage=Usage(10, 2), model="mine:1")
        answer = (await engine.conversations.messages(session.id))[-1]
        context = await engine.past.context(session.id, prepared.turn)

    assert [message.part for message in prepared.request.messages] == ["core", "core", "rules", "message"]
    assert state.open_turn is None
    assert isinstance(answer, AssistantMessage)
    assert answer.model_reply.steps == (Step(text="Hello.", usage=Usage(10, 2), model="mine:1"),)
    assert context == prepared.request.context


async def test_what_a_callers_own_model_said_is_not_taken_for_a_built_in_ones_answer(world: World) -> None:
    world.write("agent.yaml", "model: echo\nworking_context: false\n")

    async with world.pane() as pane:
        session = await pane.sessions.create()
        await pane.record(await pane.prepare(session.id, "Hi"), "Hello.")
        await drain(pane.turn(session.id, "Hi"))
        own, echo = (await pane.sessions.calls(session.id)).calls

    assert (own.model, own.built_in, own.cost_usd) == ("", False, None)
    assert (echo.model, echo.built_in, echo.cost_usd) == ("echo", True, 0)


async def test_a_prepared_request_can_be_abandoned(world: World) -> None:
    world.says("Back again.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.prepared.abandon(await engine.prepared.begin(session.id, "Hi"), "my model is down")
        error = (await engine.conversations.messages(session.id))[-1]
        await drain(engine.turn(session.id, "Hi"))

    assert isinstance(error, ErrorMessage)
    assert (error.code, error.content) == ("model_error", "my model is down")


async def test_prepare_that_does_not_fit_fails_and_frees_the_session(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\ncontext_window: 1000\nmax_output_tokens: 100\n")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        with pytest.raises(ContextTooLargeError, match=r"the largest parts are the message \(2005 tokens\)"):
            await engine.prepared.begin(session.id, "word " * 2000)
        messages = await engine.conversations.messages(session.id)
        await engine.prepared.abandon(await engine.prepared.begin(session.id, "Hi"), "enough")

    assert [message.role for message in messages] == ["user", "error"]


async def test_the_model_that_cannot_be_opened_is_an_error_with_a_next_step(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"model": "openai:gpt-5-mini"})
        events = stored(await drain(engine.turn(session.id, "Hi")))

    error = cast("TurnFinished", events[-1]).error
    assert error is not None
    assert error.code == "unknown_model"
    assert "OPENAI_API_KEY" in error.message


async def test_preview_stores_nothing_and_calls_nobody(world: World) -> None:
    world.rule("tone")
    world.rule("always", include="always")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        request = await engine.preview(session.id, "Use @rule:tone")
        after = await engine.sessions.get(session.id)

    assert [str(item.ref) for item in request.context.items] == ["rule:always", "rule:tone"]
    assert (after, world.model.calls) == (session, [])


async def test_a_provider_that_is_down_is_an_error_message(world: World) -> None:
    world.says(Reply(error=ModelUnavailableError("no route to the model")))
    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = stored(await drain(engine.turn(session.id, "Hi")))

    assert cast("TurnFinished", events[-1]).error == TurnError(
        code="model_unavailable", message="no route to the model"
    )


async def _waiting(engine: Engine, session_id: SessionId) -> tuple[ToolCall, ...]:
    state = await engine.sessions.get(session_id)
    assert state.open_turn is not None
    return state.open_turn.undecided


async def _finished(engine: Engine, session_id: SessionId) -> None:
    async for entry in engine.store.subscribe(session_id, after=0):
        if isinstance(entry.event, TurnFinished):
            return


async def _listen(events: AsyncIterator[Live], said: anyio.Event) -> None:
    text = ""
    async for event in events:
        text += event.text if isinstance(event, Delta) else ""
        if text.endswith(("and", "Half")):
            said.set()
