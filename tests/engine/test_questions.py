"""What a running tool asks: the user (elicitation), or the model (sampling), and how far it has come."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, aclosing, asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.tools.running import by_hand, http_process, listening

from patience import PATIENCE_S
from ports import free_port
from windowpane.agents.folder import FolderAgents
from windowpane.context.events import (
    Event,
    Live,
    ModelSampled,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    ToolProgress,
    ToolReturned,
    TurnFinished,
)
from windowpane.context.ids import SessionId
from windowpane.context.messages import ToolQuestion
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError, NoQuestionError
from windowpane.local.pane import LocalPane
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, stored
from windowpane.tools.mcp import McpToolbox
from windowpane.turn.costs import CostLimits
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running

SERVER = Path(__file__).parents[1] / "tools" / "servers" / "by_sdk.py"
ORDER = Reply(calls=(Call("shop__order", '{"drink": "tea"}', id="c1"),))
SUM_UP = Reply(calls=(Call("shop__sum_up", '{"text": "Long."}', id="c1"),))
SCHEMA = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"], "title": "Size"},
        "sugar": {"type": "integer", "minimum": 0, "maximum": 3, "default": 0, "title": "Sugar"},
    },
    "required": ["size"],
}


@asynccontextmanager
async def opened(
    world: World, *, url: str = "", permission: str = "not_required", **options: Any
) -> AsyncGenerator[Engine]:
    """Open an engine whose agent has the server made with the library."""
    reach: dict[str, Any] = {"url": url} if url else {"command": sys.executable, "args": [str(SERVER), "stdio"]}
    world.write("mcp.json", json.dumps({"mcpServers": {"shop": {**reach, "permission": permission, "timeout_s": 20}}}))
    async with Engine(
        store=world.store,
        agents=FolderAgents(world.root),
        models=PydanticModels(scripts=[world.model], environ=world.environ),
        toolbox=McpToolbox,
        settle_s=PATIENCE_S,
        **options,
    ) as engine:
        yield engine


async def followed(
    engine: Engine, session_id: SessionId, answer: Callable[[ToolQuestion], Any], message: str = "Go"
) -> list[Live]:
    """Run a turn and answer what is asked."""
    seen: list[Live] = []
    with anyio.fail_after(PATIENCE_S):
        async with aclosing(engine.turn(session_id, message)) as live:
            async for event in live:
                seen.append(event)
                if isinstance(event, Recorded) and isinstance(event.event, QuestionAsked):
                    await answer(event.event.question)
    return seen


def found(events: list[Live], kind: type[Event]) -> list[Event]:
    return [event for event in stored(events) if isinstance(event, kind)]


def results(events: list[Live]) -> list[tuple[str, bool]]:
    return [(e.result.content, e.result.is_error) for e in stored(events) if isinstance(e, ToolReturned)]


@pytest.fixture(scope="module")
def ports() -> Generator[dict[str, int]]:
    """Run the server over HTTP, in either protocol."""
    ports = {"new": free_port(), "old": free_port()}
    with ExitStack() as stack:
        stack.enter_context(http_process(ports["new"]))
        stack.enter_context(http_process(ports["old"], "legacy"))
        yield ports


async def reached(ports: dict[str, int], protocol: str) -> str:
    await listening(ports[protocol])
    return f"http://127.0.0.1:{ports[protocol]}/mcp"


@pytest.fixture(params=["pipes", "new", "old"])
async def url(request: pytest.FixtureRequest, ports: dict[str, int]) -> str:
    """Return where the server is reached: over pipes, or over HTTP in either protocol."""
    return "" if request.param == "pipes" else await reached(ports, request.param)


@pytest.fixture(params=["new", "old"])
async def either(request: pytest.FixtureRequest, ports: dict[str, int]) -> str:
    """Return where the server is reached in either protocol, for what is the same over pipes."""
    return await reached(ports, request.param)


@pytest.fixture
async def newest(ports: dict[str, int]) -> str:
    """Return where the server is reached, for what is the same in either protocol."""
    return await reached(ports, "new")


async def test_a_tool_asks_the_user_for_the_fields_of_a_form_and_goes_on_with_the_answer(
    world: World, url: str
) -> None:
    world.says(ORDER, "Ordered.")
    asked: list[ToolQuestion] = []
    async with opened(world, url=url) as engine:
        session = (await engine.sessions.create()).id

        async def answer(question: ToolQuestion) -> None:
            asked.append(question)
            with pytest.raises(InvalidInputError, match="size: 'huge' is not one of"):
                await engine.answer_question(session, question.id, "accept", {"size": "huge"})
            await engine.answer_question(session, question.id, "accept", {"size": "large", "sugar": 2})
            with pytest.raises(NoQuestionError):
                await engine.answer_question(session, question.id, "decline")

        events = await followed(engine, session, answer)

    (question,) = asked
    assert (question.server, question.call_id, question.kind, question.message) == (
        "shop",
        "c1",
        "form",
        "Which size of tea?",
    )
    assert {**SCHEMA, "title": "Size", "description": question.schema.get("description")} == {
        "title": "Size",
        "description": question.schema.get("description"),
        **question.schema,
    }
    assert found(events, QuestionAnswered) == [
        QuestionAnswered(turn=1, question_id=question.id, action="accept", content={"size": "large", "sugar": 2})
    ]
    assert results(events) == [("large tea, 2 sugar", False)]
    assert [event.outcome for event in stored(events) if isinstance(event, TurnFinished)] == ["completed"]


async def test_what_a_form_asks_beyond_the_protocol_is_left_to_its_server_to_check(world: World, newest: str) -> None:
    world.says(Reply(calls=(Call("shop__call_it", "{}", id="c1"),)), "Called.")
    async with opened(world, url=newest) as engine:
        session = (await engine.sessions.create()).id

        async def answer(question: ToolQuestion) -> None:
            with pytest.raises(InvalidInputError, match=r"name: .* is too long"):
                await engine.answer_question(session, question.id, "accept", {"name": "b" * 21})
            with pytest.raises(InvalidInputError, match="'name' is a required property"):
                await engine.answer_question(session, question.id, "accept", {})
            await engine.answer_question(session, question.id, "accept", {"name": "b"})

        events = await followed(engine, session, answer)

    assert results(events) == [("called b", False)]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_does_not_answer_is_told_to_the_tool_as_such(world: World, newest: str, action: Any) -> None:
    world.says(ORDER, "Not ordered.")
    async with opened(world, url=newest) as engine:
        session = (await engine.sessions.create()).id
        events = await followed(engine, session, lambda q: engine.answer_question(session, q.id, action))

    assert results(events) == [(action, False)]


async def test_a_question_over_the_pipes_of_an_older_server_belongs_to_the_one_call_that_is_under_way(
    world: World,
) -> None:
    world.says(Reply(calls=(Call("old__ask", '{"method": "elicitation/create"}', id="c1"),)), "Done.")
    config = by_hand("old")
    servers = {"old": {"command": config.command, "args": list(config.args), "permission": "not_required"}}
    async with opened(world) as engine:
        world.write("mcp.json", json.dumps({"mcpServers": servers}))
        session = (await engine.sessions.create()).id
        events = await followed(engine, session, lambda q: engine.answer_question(session, q.id, "accept", {}))

    assert [json.loads(content) for content, _ in results(events)] == [{"action": "accept", "content": {}}]


async def test_a_request_of_no_user_is_declined_at_once_and_the_record_says_so(world: World, newest: str) -> None:
    world.says(ORDER, "Not ordered.")
    async with opened(world, url=newest) as engine:
        session = (await engine.sessions.create(listed=False)).id

        async def nothing(question: ToolQuestion) -> None:
            pass

        events = await followed(engine, session, nothing)

    (asked,) = [event for event in stored(events) if isinstance(event, QuestionAsked)]
    assert found(events, QuestionAnswered) == [
        QuestionAnswered(
            turn=1,
            question_id=asked.question.id,
            action="decline",
            actor="system",
            reason="no user can be asked in this request",
        )
    ]
    assert results(events) == [("decline", False)]


async def test_a_caller_that_waits_for_the_whole_turn_is_given_the_question_and_the_turn_goes_on_after_it(
    world: World, newest: str
) -> None:
    world.says(ORDER, "Ordered.")
    async with opened(world, url=newest) as engine:
        pane = LocalPane(engine)
        session = (await pane.sessions.create()).id
        view = await pane.ask(session, "Tea, please")
        now = (await pane.sessions.get(session)).open_turn

        assert (view.outcome, [question.message for question in view.questions]) == ("waiting", ["Which size of tea?"])
        assert now is not None
        assert (now.state, now.questions) == ("waiting", view.questions)

        await pane.answer_question(session, view.questions[0].id, "accept", {"size": "small"})
        with anyio.fail_after(PATIENCE_S):
            async for _ in engine.follow(session, 1):
                pass

        assert (await pane.turns.get(session, 1)).text == "Ordered."


async def test_a_turn_that_is_cancelled_at_a_question_ends_and_asks_nothing_any_more(world: World, newest: str) -> None:
    world.says(ORDER, "Never said.", "Again.")
    async with opened(world, url=newest) as engine:
        session = (await engine.sessions.create()).id

        async def stop(question: ToolQuestion) -> None:
            with anyio.fail_after(PATIENCE_S):
                await engine.cancel(session)

        events = await followed(engine, session, stop)
        state = await engine.sessions.get(session)

    assert [event.outcome for event in stored(events) if isinstance(event, TurnFinished)] == ["cancelled"]
    assert state.open_turn is None


async def test_a_tool_that_needs_approval_asks_before_it_uses_the_model_and_what_it_did_is_recorded(
    world: World, url: str
) -> None:
    world.says(SUM_UP, "Short.", "It is short.")
    asked: list[ToolQuestion] = []
    async with opened(world, url=url, permission="required") as engine:
        session = (await engine.sessions.create()).id

        async def answer(question: ToolQuestion) -> None:
            asked.append(question)
            await engine.answer_question(session, question.id, "accept")

        await followed(engine, session, answer)
        events: list[Live] = []
        with anyio.fail_after(PATIENCE_S):
            async with aclosing(engine.approve(session, {"c1": "allow_once"})) as live:
                async for event in live:
                    events.append(event)
                    if isinstance(event, Recorded) and isinstance(event.event, QuestionAsked):
                        await answer(event.event.question)

    (question,) = asked
    assert (question.kind, question.message) == (
        "sampling",
        "To scripted:test, at most 50 tokens of answer.\n\nSYSTEM: Be brief.\n\nUSER: Sum up: Long.",
    )
    (sampled,) = [event for event in stored(events) if isinstance(event, ModelSampled)]
    assert (sampled.question_id, sampled.step.text) == (question.id, "Short.")
    assert results(events) == [("scripted:test said: Short.", False)]
    # The model was given what the server wrote, and nothing of the session.
    given = [(message.role, message.content) for message in world.model.calls[1].messages]
    assert given == [("system", "Be brief."), ("user", "Sum up: Long.")]


async def test_a_tool_that_needs_no_approval_uses_the_model_unasked(world: World, newest: str) -> None:
    world.says(SUM_UP, "Short.", "It is short.")
    async with opened(world, url=newest) as engine:
        session = (await engine.sessions.create()).id

        async def nothing(question: ToolQuestion) -> None:
            pass

        events = await followed(engine, session, nothing)

    assert [
        (event.action, event.actor, event.reason) for event in stored(events) if isinstance(event, QuestionAnswered)
    ] == [("accept", "system", "this tool needs no approval")]
    assert results(events) == [("scripted:test said: Short.", False)]


async def test_progress_is_told_while_a_tool_runs_and_is_not_stored(world: World, newest: str) -> None:
    world.says(Reply(calls=(Call("shop__sleep", '{"seconds": 0.9, "reports": 3}', id="c1"),)), "Awake.")
    async with opened(world, url=newest) as engine:
        session = (await engine.sessions.create()).id

        async def nothing(question: ToolQuestion) -> None:
            pass

        watched: list[Any] = []
        events: list[Live] = []
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                async with aclosing(engine.watch(session)) as seen:
                    async for event in seen:
                        watched.append(event)
                        if isinstance(event, Recorded) and isinstance(event.event, TurnFinished):
                            return

            tasks.start_soon(watch)
            await anyio.wait_all_tasks_blocked()
            events += await followed(engine, session, nothing)

    reports = [ToolProgress(1, "c1", number, 3) for number in (1, 2, 3)]
    assert [event for event in events if isinstance(event, ToolProgress)] == reports
    assert [event for event in watched if isinstance(event, ToolProgress)] == reports


def signing_in(address: str = "https://example.org/sign-in", **arguments: Any) -> Reply:
    return Reply(calls=(Call("shop__sign_in", json.dumps({"address": address, **arguments}), id="c1"),))


@pytest.mark.parametrize(
    ("url", "by_error"), [("pipes", True), ("new", True), ("old", True), ("old", False)], indirect=["url"]
)
async def test_a_tool_has_the_user_open_an_address_and_goes_on_when_that_is_done(
    world: World, url: str, by_error: bool
) -> None:
    world.says(signing_in(by_error=by_error), "You are in.")
    asked: list[ToolQuestion] = []
    async with opened(world, url=url) as engine:
        session = (await engine.sessions.create()).id

        async def answer(question: ToolQuestion) -> None:
            asked.append(question)
            await engine.answer_question(session, question.id, "accept")

        events = await followed(engine, session, answer)

    (question,) = asked
    assert (question.kind, question.url, question.message) == ("url", "https://example.org/sign-in", "Please sign in.")
    assert found(events, QuestionAnswered) == [QuestionAnswered(turn=1, question_id=question.id, action="accept")]
    assert results(events) == [("accept", False)]


async def test_a_user_who_does_not_open_an_address_ends_the_call_and_the_model_is_told(
    world: World, either: str
) -> None:
    world.says(signing_in("https://example.org/never"), "You are not in.")
    async with opened(world, url=either) as engine:
        session = (await engine.sessions.create()).id
        events = await followed(engine, session, lambda q: engine.answer_question(session, q.id, "decline"))

    (result,) = results(events)
    assert result in (("decline", False), ("shop:sign_in: URL elicitation required", True))
    assert [event.outcome for event in stored(events) if isinstance(event, TurnFinished)] == ["completed"]


async def test_an_address_that_is_not_one_of_the_web_is_shown_to_no_user(world: World, newest: str) -> None:
    world.says(signing_in("javascript:alert(1)"), "You are not in.")
    async with opened(world, url=newest) as engine:
        session = (await engine.sessions.create()).id
        events = await followed(engine, session, unanswered)

    assert [(e.action, e.actor, e.reason) for e in stored(events) if isinstance(e, QuestionAnswered)] == [
        ("decline", "system", "the address is not one of the web")
    ]
    assert results(events) == [("decline", False)]


async def unanswered(question: ToolQuestion) -> None:
    """Leave a question to the system."""


def consulting(times: int, words: int = 1, max_tokens: int = 5) -> Reply:
    arguments = {"times": times, "words": words, "max_tokens": max_tokens}
    return Reply(calls=(Call("shop__consult", json.dumps(arguments), id="c1"),))


async def test_what_a_tool_asks_the_model_is_in_the_ledger_and_paid_by_the_owner(world: World, either: str) -> None:
    world.write("agent.yaml", "model: openai:own\nprices: {'openai:own': {input: 1000, output: 1000}}\n")
    calls = (WireCall("c1", "shop__consult", ('{"times": 2, "words": 1, "max_tokens": 50000}',)),)
    counts: dict[str, Any] = {"input_tokens": 100, "output_tokens": 10}
    replies = [WireReply(calls=calls, **counts), *[WireReply(text=("Well.",), **counts)] * 3]
    async with running(*map(openai_chat.answer, replies)) as wire:
        world.environ = {"OPENAI_API_KEY": "sk-own", "OPENAI_BASE_URL": wire.url}
        async with opened(world, url=either, cost_limits=CostLimits(per_day_usd=Decimal(1))) as engine:
            pane = LocalPane(engine)
            session = (await pane.sessions.create()).id
            events = await followed(engine, session, unanswered)
            ledger = (await pane.turns.calls(session, 1)).calls
            (limit,) = await engine.costs.limits("local")

    assert results(events) == [("asked 2 times", False)]
    assert [call.purpose for call in ledger] == ["answer", "sampling", "sampling", "answer"]
    assert limit.spent_usd == Decimal("0.44")
    # An answer may be as long as the session's, however much the server asks for.
    assert [asked.body["max_completion_tokens"] for asked in wire.asked[1:3]] == [4096, 4096]


@pytest.mark.parametrize(
    ("reply", "asked", "why"),
    [
        (consulting(11), 10, "one call may ask the model 10 times"),
        (consulting(3, words=40_000), 2, "one call may use 100,000 tokens of the model"),
    ],
    ids=["rounds", "tokens"],
)
async def test_one_call_asks_the_model_only_so_much(
    world: World, either: str, reply: Reply, asked: int, why: str
) -> None:
    world.says(reply, *(["Well."] * asked), "That was a lot.")
    async with opened(world, url=either) as engine:
        session = (await engine.sessions.create()).id
        events = await followed(engine, session, unanswered)

    (content, is_error), *others = results(events)
    assert (others, is_error) == ([], True)
    assert f"the model was not asked: {why}" in content
    assert len(found(events, ModelSampled)) == asked
    assert len(world.model.calls) == asked + 2
