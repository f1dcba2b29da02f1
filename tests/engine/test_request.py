"""What a model is given, and that the record of it stays true."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from windowpane.context.events import TurnFinished
from windowpane.context.items import item_hash, reference_ref, rule_ref, tool_ref
from windowpane.context.messages import AssistantMessage, ErrorMessage
from windowpane.context.request import Budget
from windowpane.errors import TurnNotFoundError
from windowpane.models.scripted import Call, Reply
from windowpane.request.assemble import FRAME_TOKENS
from windowpane.request.prompt.sections import WITHOUT_WEB_TEXT
from windowpane.request.selector import FixedSelector
from windowpane.testing import World, drain, tool


@pytest.mark.spec("S0.23", "S0.56-S0.58", "S1.24-S1.27", "S1.29", "S1.98")
async def test_the_prompt_order_is_system_rules_references_history_selected_message(world: World) -> None:
    world.rule("second", include="always", priority=20)
    world.rule("first", include="always", priority=10)
    world.reference("handbook", include="always")
    world.rule("picked", include="agent")
    world.reference("atlas", include="agent")
    world.selector = FixedSelector({"Where?": {"rule:picked": 0.9, "reference:atlas": 0.8}})
    world.says("Hello.", "There.")

    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"system_prompt": "Answer in verse."})
        await drain(engine.turn(session.id, "Hi"))
        await drain(engine.turn(session.id, "Where?"))

    messages = world.model.calls[1].messages
    assert [(message.role, message.part, message.name) for message in messages] == [
        ("system", "core", "core"),
        ("system", "core", "boundary"),
        ("system", "override", "override"),
        ("system", "rules", ""),
        ("system", "references", ""),
        ("user", "history", "message 2"),
        ("assistant", "history", "message 5"),
        ("user", "selected", ""),
        ("user", "message", ""),
    ]
    assert messages[0].content == "You are Pane."
    assert messages[2].content == "Answer in verse."
    assert messages[3].content == (
        "# Rules\n\nFollow every rule; where two disagree, the earlier one wins.\n\n"
        "## first\n\nText of first.\n\n## second\n\nText of second."
    )
    assert messages[4].content == (
        "# References\n\nDraw on these where they help, and name the ones you used.\n\n## handbook\n\nText of handbook."
    )
    assert [message.content for message in messages[5:7]] == ["Hi", "Hello."]
    code = messages[7].content[10:22]
    assert messages[7].content == (
        f"[[context {code}]]\n"
        "# Rules\n\nFollow every rule; where two disagree, the earlier one wins.\n\n## picked\n\nText of picked.\n\n"
        "# References\n\nDraw on these where they help, and name the ones you used.\n\n## atlas\n\nText of atlas.\n"
        f"[[end {code}]]"
    )
    assert code in messages[1].content
    assert messages[8].content == "Where?"


@pytest.mark.spec("S0.57", "S1.30")
async def test_a_selected_tool_is_offered_in_its_turn_and_its_approvals_and_not_in_the_next(world: World) -> None:
    world.toolbox.put("files", [tool("find", "found {what}", include="agent")])
    world.selector = FixedSelector({"Find it.": {"files:find": 0.8}})
    world.says(Reply(calls=(Call("files__find", '{"what": "it"}', "c1"),)), "Found.", "Thanks.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Find it."))
        await drain(engine.approve(session.id, {"c1": "allow_once"}))
        await drain(engine.turn(session.id, "Thanks."))

    assert [[offered.offered_name for offered in call.tools] for call in world.model.calls] == [
        ["files__find"],
        ["files__find"],
        [],
    ]


async def test_what_the_record_calls_a_tool_in_use_is_exactly_what_the_model_was_offered(world: World) -> None:
    world.toolbox.put("up", [tool("read"), tool("wipe", permission="forbidden")])
    world.toolbox.put("down", [tool("ring")])
    world.says("Hello.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        world.toolbox.drop("down")
        await drain(engine.turn(session.id, "Hi"))
        context = await engine.past.context(session.id, 1)

    assert [(str(item.ref), item.status, item.offered_name) for item in context.items] == [
        ("down:ring", "missing", None),
        ("up:read", "used", "up__read"),
        ("up:wipe", "not_permitted", None),
    ]
    assert [offered.offered_name for offered in world.model.calls[0].tools] == ["up__read"]


@pytest.mark.spec("S0.22", "S0.60-S0.62", "S0.66", "S0.71", "S1.28")
async def test_a_past_turn_stays_true_after_edits_and_deletions(world: World) -> None:
    kept = world.rule("tone", "Be brief.", include="always", description="How to talk")
    gone = world.reference("atlas", "Here be dragons.", include="always")
    world.says("Hello.", "Again.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        rule = engine.agents.current("pane").rules[0]
        await drain(engine.turn(session.id, "Hi"))
        sent = world.model.calls[0].messages
        kept.write_text("---\ninclude: always\n---\nBe verbose.")
        gone.unlink()
        await drain(engine.turn(session.id, "Hi again"))

    async with World(world.root, store=world.store).engine() as engine:
        first = await engine.past.request(session.id, 1)
        second = await engine.past.context(session.id, 2)
        text = await engine.store.blob(session.id, item_hash(rule))

    assert first.messages == sent
    assert [(str(item.ref), item.status, item.hash is None) for item in second.items] == [
        ("rule:tone", "used", False),
        ("reference:atlas", "missing", True),
    ]
    assert second.items[0].hash != first.context.items[0].hash
    assert "Be brief." in text


@pytest.mark.spec("S0.36", "S0.55", "S1.11", "S0.67-S0.69")
async def test_the_record_names_everything_about_the_request(world: World) -> None:
    world.rule("tone", "Be brief.", include="always", priority=7)
    world.toolbox.put("files", [tool("read", description="Read a file")])
    world.says("Hello.")
    before = datetime.now(UTC)

    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"temperature": 0.5, "max_output_tokens": 100})
        await drain(engine.turn(session.id, "Hi"))
        context = await engine.past.context(session.id, 1)

    assert (context.turn, context.agent, context.query.text, context.degraded) == (1, "pane", "Hi", ())
    assert before <= context.timestamp <= datetime.now(UTC)
    assert (context.settings.model, context.settings.temperature, context.settings.max_output_tokens) == (
        "scripted:test",
        0.5,
        100,
    )
    rule = context.item(rule_ref("tone"))
    assert rule is not None
    assert (rule.include_mode, rule.status, rule.reason, rule.priority, rule.tokens > 0, len(rule.hash or "")) == (
        "always",
        "used",
        "included in every session of this agent",
        7,
        True,
        64,
    )
    assert [(part.kind, part.name) for part in context.parts] == [
        ("core", "core"),
        ("core", "boundary"),
        ("rules", ""),
        ("message", ""),
        ("tools", "1 offered"),
    ]
    assert context.budget == Budget(
        window_tokens=32000,
        reply_tokens=100,
        used_tokens=sum(part.tokens for part in context.parts),
        window_source="model",
        pieces_tokens=32000 - 100 - FRAME_TOKENS,
    )


@pytest.mark.spec("S0.37", "S0.38", "S0.65", "S1.12", "S1.31", "S0.86")
async def test_every_answer_carries_the_one_request_of_its_turn(world: World) -> None:
    world.toolbox.put("files", [tool("read", permission="not_required")])
    world.says(Reply("Let me look.", calls=(Call("files__read"),)), "It is empty.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = await drain(engine.turn(session.id, "Hi"))
        user, answer = await engine.conversations.messages(session.id)
        request = await engine.past.request(session.id, 1)

    assert (user.role, user.turn) == ("user", 1)
    assert isinstance(answer, AssistantMessage)
    assert (answer.turn, answer.model_reply.text, len(answer.model_reply.steps)) == (
        1,
        "Let me look.\n\nIt is empty.",
        2,
    )
    assert answer.request is not None
    assert sum(1 for event in events if getattr(getattr(event, "event", None), "type", "") == "request.built") == 1
    assert world.model.calls[0].messages == request.messages
    assert world.model.calls[1].messages[: len(request.messages)] == request.messages


async def test_a_tool_result_follows_its_call_with_nothing_in_between(world: World) -> None:
    world.toolbox.put("files", [tool("read", "{path}!", permission="not_required")])
    calls = (Call("files__read", '{"path": "a"}', "c1"), Call("files__read", '{"path": "b"}', "c2"))
    world.says(Reply("Two.", calls=calls), "Done.", "Bye.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Read both"))
        await drain(engine.turn(session.id, "Bye"))

    for call in world.model.calls[1:]:
        start = next(index for index, message in enumerate(call.messages) if message.role == "assistant")
        shape = [
            (m.role, m.content, [c.id for c in m.tool_calls], m.tool_call_id) for m in call.messages[start : start + 3]
        ]
        assert shape == [
            ("assistant", "Two.", ["c1", "c2"], None),
            ("tool", "a!", [], "c1"),
            ("tool", "b!", [], "c2"),
        ]


async def test_the_question_is_sent_once(world: World) -> None:
    world.says("One.", "Two.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Only once"))

    assert [m.content for m in world.model.calls[0].messages].count("Only once") == 1


async def test_a_message_sent_again_after_a_failure_is_not_asked_twice(world: World) -> None:
    world.says("Fine.")
    world.environ = {}

    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"model": "openai:gpt-none"})
        await drain(engine.turn(session.id, "Try me"))
        await engine.sessions.update(session.id, {"model": None})
        await drain(engine.turn(session.id, "Try me"))

    assert [m.content for m in world.model.calls[0].messages].count("Try me") == 1


async def test_items_added_by_hand_give_way_before_the_conversation_does_and_the_record_says_so(world: World) -> None:
    settings = "working_context: false\ncontext_window: 1500\nmax_output_tokens: 200\n"
    world.write("agent.yaml", f"model: scripted:test\n{settings}")
    world.reference("big", "word " * 5000, include="manual")
    world.rule("long", "rule " * 3000, include="manual")
    world.says("Hello.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.items.add(session.id, reference_ref("big"))
        await engine.items.add(session.id, rule_ref("long"))
        await drain(engine.turn(session.id, "Hi"))
        context = await engine.past.context(session.id, 1)

    assert [(str(item.ref), item.status) for item in context.items] == [
        ("reference:big", "truncated"),
        ("rule:long", "over_budget"),
    ]
    assert context.items[0].reason.startswith("added to this session by hand; shortened from ")
    assert context.items[1].reason.startswith("needs ")
    assert context.budget.room_tokens >= 0
    sent = "".join(message.content for message in world.model.calls[0].messages)
    assert "[… shortened to fit the context window]" in sent
    assert "rule rule" not in sent


async def test_always_items_that_alone_exceed_the_window_fail_before_any_model_call(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\ncontext_window: 1500\n")
    world.rule("endless", "rule " * 3000, include="always")
    world.says("Never said.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = await drain(engine.turn(session.id, "Hi"))
        _, error = await engine.conversations.messages(session.id)

    assert world.model.calls == []
    assert isinstance(error, ErrorMessage)
    assert error.code == "context_too_large"
    assert "rule:endless (300" in error.content
    assert "in its window of 1500 tokens (agent.yaml) (375 are reserved for the reply: `max_output_tokens`)" in (
        error.content
    )
    assert "Remove or shorten one" in error.content
    last = events[-1]
    assert getattr(last, "event", None).__class__ is TurnFinished


async def test_a_small_window_keeps_a_quarter_for_the_reply_and_has_no_working_context(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\ncontext_window: 2048\n")
    world.says("Hello.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "hi"))
        context = await engine.past.context(session.id, 1)

    assert (context.budget.window_tokens, context.budget.reply_tokens) == (2048, 512)
    assert context.settings.max_output_tokens == 2048 - context.budget.used_tokens
    assert world.model.calls[0].settings == context.settings
    left_out = "the window has 2,048 tokens, and below 8,000 it is left out"
    assert [(part.kind, part.name, part.status, part.reason) for part in context.parts] == [
        ("core", "core", "used", ""),
        ("core", "boundary", "used", ""),
        ("message", "", "used", ""),
        ("core", "working_context", "left_out", left_out),
    ]
    assert context.items == ()


async def test_a_request_without_a_session_is_not_asked_to_keep_notes(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\n")
    world.says("Hello.", "Hello.")

    async with world.engine() as engine:
        listed = await engine.sessions.create()
        once = await engine.sessions.create(listed=False)
        for session in (listed, once):
            await drain(engine.turn(session.id, "hi"))
        contexts = [await engine.past.context(session.id, 1) for session in (listed, once)]

    notes = [[(p.status, p.reason) for p in c.parts if p.name == "working_context"] for c in contexts]
    assert notes == [[("used", "")], [("left_out", "a request without a session has nothing to be resumed")]]
    assert [[item.name for item in context.items] for context in contexts] == [
        ["get_relevant_context", "set_relevant_context"],
        [],
    ]


async def test_what_cannot_be_done_for_a_message_is_said_in_the_record_and_to_the_model(world: World) -> None:
    world.rule("tone", "Be kind.", include="manual")
    world.says("Hello.")

    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"mode": "research"})
        await drain(engine.turn(session.id, "Use @rule:tone and @rule:tome and @reference:atlas"))
        context = await engine.past.context(session.id, 1)

    assert context.degraded == (
        "web search skipped: no search engine is configured; set WINDOWPANE_SEARCH_ENGINE",
        "@rule:tome was mentioned, but the agent has no such rule",
        "@reference:atlas was mentioned, but the agent has no such reference",
    )
    assert [message.content for message in world.model.calls[0].messages if message.name == "mode"] == [
        WITHOUT_WEB_TEXT
    ]


async def test_a_turn_without_a_record_says_that_there_is_none(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        with pytest.raises(TurnNotFoundError, match="has no turn 1"):
            await engine.past.context(session.id, 1)


async def test_a_tool_added_by_hand_is_offered_until_it_is_removed(world: World) -> None:
    world.toolbox.put("files", [tool("read", include="manual")])
    world.says("One.", "Two.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.items.add(session.id, tool_ref("files", "read"))
        await drain(engine.turn(session.id, "First"))
        await engine.items.remove(session.id, tool_ref("files", "read"))
        await drain(engine.turn(session.id, "Second"))

    assert [len(call.tools) for call in world.model.calls] == [1, 0]


async def test_an_edit_on_disk_is_in_the_next_request(world: World) -> None:
    world.rule("tone", "Be brief.", include="always")
    world.says("One.", "Two.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "First"))
        world.rule("tone", "Be verbose indeed.", include="always")
        await drain(engine.turn(session.id, "Second"))

    rules = [next(m.content for m in call.messages if m.part == "rules") for call in world.model.calls]
    assert [text.rpartition("\n\n")[2] for text in rules] == ["Be brief.", "Be verbose indeed."]
