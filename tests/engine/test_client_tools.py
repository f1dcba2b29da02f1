from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.context.events import ApprovalRequested, ModelReplied, RequestBuilt, ToolReturned, TurnFinished
from windowpane.context.items import CLIENT_SERVER, Tool, tool_ref
from windowpane.context.messages import AssistantMessage, Step, ToolCall, ToolResult
from windowpane.errors import NoResultAwaitedError
from windowpane.models.scripted import Call, Reply, ScriptedModel
from windowpane.sessions.past import Exchange
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, stored, tool

WEATHER = Tool(server=CLIENT_SERVER, name="weather", description="Tells the weather.", permission="not_required")
ASKS = Reply("Let me see.", calls=(Call("client__weather", '{"city": "Oslo"}', id="c1"),))


async def test_a_tool_that_the_client_brings_is_offered_and_its_call_waits_for_the_client(world: World) -> None:
    world.says(ASKS, "Rain.")
    async with world.engine() as engine:
        session = await engine.sessions.create()

        first = stored(await drain(engine.turn(session.id, "Weather?", brought=[WEATHER])))
        waiting = (await engine.sessions.get(session.id)).open_turn
        then = stored(await drain(engine.answer_calls(session.id, [ToolResult("c1", "12 degrees, rain")])))
        context = await engine.past.context(session.id, 1)

    assert [event.type for event in first] == ["turn.started", "request.built", "model.replied"]
    assert waiting is not None
    assert waiting.waits
    assert [call.id for call in waiting.for_client] == ["c1"]
    assert then[0] == ToolReturned(turn=1, result=ToolResult("c1", "12 degrees, rain"))
    assert [event.type for event in then] == ["tool.returned", "model.replied", "turn.finished"]
    assert [offered.offered_name for offered in world.model.calls[0].tools] == ["client__weather"]
    assert world.model.calls[1].messages[-1].content == "12 degrees, rain"
    assert [(item.ref, item.include_mode, item.status, item.reason) for item in context.items] == [
        (tool_ref("client", "weather"), "manual", "used", "provided and run by the client")
    ]


async def test_a_tool_of_the_client_is_brought_for_one_turn(world: World) -> None:
    world.says("One.", "Two.")
    async with world.engine() as engine:
        session = await engine.sessions.create()

        await drain(engine.turn(session.id, "Weather?", brought=[WEATHER]))
        await drain(engine.turn(session.id, "And now?"))

    assert [len(call.tools) for call in world.model.calls] == [1, 0]


async def test_tools_of_the_agent_run_before_the_client_is_waited_for(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents", permission="not_required")])
    both = Reply(calls=(Call("client__weather", "{}", id="c1"), Call("files__read", '{"path": "a"}', id="c2")))
    world.says(both, "Done.")
    async with world.engine() as engine:
        session = await engine.sessions.create()

        first = stored(await drain(engine.turn(session.id, "Go", brought=[WEATHER])))
        await drain(engine.answer_calls(session.id, [ToolResult("c1", "rain")]))
        after = await engine.sessions.get(session.id)

    assert [event.result.call_id for event in first if isinstance(event, ToolReturned)] == ["c2"]
    assert after.open_turn is None


async def test_a_person_and_the_client_can_be_waited_for_at_once(world: World) -> None:
    world.toolbox.put("files", [tool("read", "contents")])
    both = Reply(calls=(Call("client__weather", "{}", id="c1"), Call("files__read", '{"path": "a"}', id="c2")))
    world.says(both, "Done.")
    async with world.engine() as engine:
        session = await engine.sessions.create()

        first = stored(await drain(engine.turn(session.id, "Go", brought=[WEATHER])))
        second = stored(await drain(engine.answer_calls(session.id, [ToolResult("c1", "rain")])))
        third = stored(await drain(engine.approve(session.id, {"c2": "allow_once"})))

    assert isinstance(first[-1], ApprovalRequested)
    assert [event.type for event in second] == ["tool.returned"]
    assert third[-1] == TurnFinished(turn=1, outcome="completed")


async def test_the_turn_goes_on_in_another_process_with_the_request_it_began_with(tmp_path: Path) -> None:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "log.db"))
    world.says(ASKS)
    async with world.engine() as engine:
        session = await engine.sessions.create()
        first = stored(await drain(engine.turn(session.id, "Weather?", brought=[WEATHER])))
    world.store, world.model = SQLiteStore(tmp_path / "log.db"), ScriptedModel("test", [Reply("Rain.")])
    async with world.engine() as engine:
        then = stored(await drain(engine.answer_calls(session.id, [ToolResult("c1", "rain")])))
        events = [entry.event for entry in await engine.past.events(session.id, 1)]

    assert [offered.offered_name for offered in world.model.calls[0].tools] == ["client__weather"]
    assert isinstance(then[-1], TurnFinished)
    assert [event for event in events if isinstance(event, RequestBuilt)] == [
        event for event in first if isinstance(event, RequestBuilt)
    ]


async def test_another_message_instead_of_the_results_gives_the_turn_up(world: World) -> None:
    world.says(ASKS, "Fine.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Weather?", brought=[WEATHER]))

        events = stored(await drain(engine.turn(session.id, "Never mind")))

    assert events[0] == TurnFinished(turn=1, outcome="cancelled")
    assert [event.step.text for event in events if isinstance(event, ModelReplied)] == ["Fine."]


async def test_results_that_no_call_waits_for_change_nothing(world: World) -> None:
    world.says(ASKS, "Rain.")
    async with world.engine() as engine:
        session = await engine.sessions.create()

        with pytest.raises(NoResultAwaitedError, match="no tool call of this session waits for a result"):
            await drain(engine.answer_calls(session.id, [ToolResult("c1", "rain")]))
        await drain(engine.turn(session.id, "Weather?", brought=[WEATHER]))
        with pytest.raises(NoResultAwaitedError, match="not waiting for a result: c9; these wait: c1"):
            await drain(engine.answer_calls(session.id, [ToolResult("c9", "rain")]))
        with pytest.raises(NoResultAwaitedError, match="no result was given; these calls wait: c1"):
            await drain(engine.answer_calls(session.id, []))
        await drain(engine.answer_calls(session.id, [ToolResult("c1", "rain")]))
        after = await engine.sessions.get(session.id)

    assert (after.open_turn, after.turn_count) == (None, 1)


async def test_a_result_of_the_client_is_cut_to_what_fits(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\ncontext_window: 6000\n")
    world.says(ASKS, "Rain.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Weather?", brought=[WEATHER]))

        await drain(engine.answer_calls(session.id, [ToolResult("c1", "rain and wind " * 5000)]))

    sent = world.model.calls[1].messages[-1].content
    assert sent.endswith("[… the rest of this result did not fit the context window]")
    assert len(sent) < 30_000


async def test_a_session_can_begin_with_what_was_said_elsewhere(world: World) -> None:
    world.says("Third.")
    call = ToolCall("p1", "client__weather", "{}", tool_ref("client", "weather"))
    past = [
        Exchange(steps=(Step(text="Welcome."),)),
        Exchange("First?", (Step(tool_calls=(call,), results=(ToolResult("p1", "rain"),)), Step(text="First."))),
        Exchange("Unanswered?"),
    ]
    async with world.engine() as engine:
        session = await engine.sessions.create(past=past, listed=False)

        await drain(engine.turn(session.id, "Third?", brought=[WEATHER]))
        messages = await engine.conversations.messages(session.id)
        listed = await engine.sessions.list("local")
        owner = (await engine.sessions.get(session.id)).owner

    sent = [(message.role, message.content) for message in world.model.calls[0].messages if message.part == "history"]
    assert sent == [
        ("assistant", "Welcome."),
        ("user", "First?"),
        ("assistant", ""),
        ("tool", "rain"),
        ("assistant", "First."),
        ("user", "Unanswered?"),
    ]
    assert [message.role for message in messages] == ["assistant", "user", "assistant", "user", "user", "assistant"]
    assert [message.request is not None for message in messages if isinstance(message, AssistantMessage)] == [
        False,
        False,
        True,
    ]
    assert (listed.sessions, owner) == ((), "local")
