"""Requests that go on with the last one, as providers receive them: their bytes share what the record claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from windowpane.insight.past import past_turn
from windowpane.insight.wire import BuiltCall, spans_of
from windowpane.request.selector import FixedSelector
from windowpane.testing import World, drain, tool
from wire import anthropic_messages, openai_chat, openai_responses
from wire.reply import WireReply
from wire.server import Answer, running

SELECTED = {"one": {"rule:C": 0.9, "files:find": 0.8}, "two": {"reference:Y": 0.9}, "three": {"files:grep": 0.9}}


@dataclass(frozen=True)
class Protocol:
    """A way to speak to a provider. `messages` are where its body has the conversation."""

    model: str
    answer: Callable[[WireReply], Answer]
    environ: Callable[[str], dict[str, str]]
    messages: str
    adds: bool


def _openai(url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "key"}


def _anthropic(url: str) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "key"}


PROTOCOLS = {
    "anthropic": Protocol("anthropic:claude-opus-5", anthropic_messages.answer, _anthropic, "messages", True),
    "older anthropic": Protocol("anthropic:claude-haiku-4-5", anthropic_messages.answer, _anthropic, "messages", False),
    "responses": Protocol("openai-responses:gpt-5", openai_responses.answer, _openai, "input", True),
    "chat": Protocol("openai:qwen3", openai_chat.answer, _openai, "messages", False),
}


def without_points(body: Any) -> Any:
    """Return a body without the marks up to where it is kept: providers do not count them as part of the prompt."""
    return json.loads(
        json.dumps(body), object_pairs_hook=lambda pairs: dict(p for p in pairs if p[0] != "cache_control")
    )


def points(body: Any) -> int:
    """Return how many such marks a body has."""
    return json.dumps(body).count('"cache_control"')


@pytest.mark.parametrize("name", PROTOCOLS)
async def test_each_body_begins_with_the_last_one_outside_a_re_base(world: World, name: str) -> None:
    protocol = PROTOCOLS[name]
    world.write("agent.yaml", f"model: {protocol.model}\nworking_context: false\nfinders: false\n")
    world.rule("A", include="always")
    world.rule("C", include="agent")
    world.reference("Y", include="agent")
    world.toolbox.put("files", [tool("read"), tool("find", include="agent"), tool("grep", include="agent")])
    world.selector = FixedSelector(SELECTED)
    turns = ("one", "two", "three", "  four\n")
    async with running(*[protocol.answer(WireReply((f"Answer {n}.",))) for n in turns]) as server:
        world.environ = protocol.environ(server.url)
        async with world.engine() as engine:
            session = await engine.sessions.create()
            for message in turns:
                await drain(engine.turn(session.id, message))
            past = [await past_turn(engine, session.id, number) for number in range(1, len(turns) + 1)]

    bodies = [asked.body for asked in server.asked]
    for (before, after), turn in zip(pairwise(bodies), past[1:], strict=True):
        rebase = turn.context.rebase
        first, second = without_points(before), without_points(after)
        if rebase is not None:
            assert (rebase.code, protocol.adds) == ("tools", False)
            assert first["tools"] != second["tools"]
            continue
        assert json.dumps(first["tools"]) == json.dumps(second["tools"])
        assert first.get("system") == second.get("system")
        assert second[protocol.messages][: len(first[protocol.messages])] == first[protocol.messages]
    assert [turn.context.settings.cache for turn in past] == ["stable"] * 4
    assert sum(turn.context.rebase is not None for turn in past) == (0 if protocol.adds else 1)
    assert "  four\n" in json.loads(json.dumps(str(bodies[-1][protocol.messages][-1]))).replace("\\n", "\n")
    _is_one_system_message(bodies[-1], name)
    assert bool(points(bodies[-1])) == ("anthropic" in name)
    assert points(bodies[-1]) <= 4
    assert {body.get("prompt_cache_key") for body in bodies} == (
        {None} if "anthropic" in name else {past[0].context.settings.cache_key}
    )


def _is_one_system_message(body: Any, name: str) -> None:
    if "anthropic" in name:
        assert len(body["system"]) == 1
    else:
        said = body.get("messages") or body["input"]
        roles = [each.get("role") for each in said if each.get("type") != "additional_tools"]
        assert (roles[0], roles.count("system"), roles.count("developer")) == ("system", 1, 0)


@pytest.mark.parametrize("name", PROTOCOLS)
async def test_every_byte_of_such_a_body_has_an_owner(world: World, name: str) -> None:
    protocol = PROTOCOLS[name]
    world.write("agent.yaml", f"model: {protocol.model}\nworking_context: false\nfinders: false\n")
    world.rule("C", "Say where it is.", include="agent")
    world.toolbox.put("files", [tool("read"), tool("find", include="agent")])
    world.selector = FixedSelector(SELECTED)
    async with running(protocol.answer(WireReply(("Yes.",))), protocol.answer(WireReply(("No.",)))) as server:
        world.environ = protocol.environ(server.url)
        async with world.engine() as engine:
            session = await engine.sessions.create(settings={"time_zone": "Europe/Paris"})
            await drain(engine.turn(session.id, "one"))
            await drain(engine.turn(session.id, "nothing new"))
            request = (await past_turn(engine, session.id, 2)).request

    body = server.asked[1].raw.decode()
    tools = (*request.tools, *request.declared)
    spans = spans_of(body, BuiltCall(request.messages, tools, len(request.messages), {}))

    assert (spans[0].start, spans[-1].end) == (0, len(body))
    assert all(before.end == after.start for before, after in pairwise(spans))
    owners = {span.owner for span in spans}
    assert {"selected turn 1", "core core", "core boundary", "message", "time_context time_context"} <= owners
    for message in request.messages:
        if message.part in ("selected", "message", "time_context", "core"):
            owner = f"{message.part} {message.name}".strip()
            own = "".join(body[span.start : span.end] for span in spans if span.owner == owner)
            assert json.dumps(message.content)[1:-1].split("\\n")[-1] in own


@pytest.mark.parametrize(
    ("model", "answer"),
    [("openai-chat:gpt-5", openai_chat.answer), ("openai-responses:gpt-5", openai_responses.answer)],
)
async def test_a_strict_agent_allows_only_the_tools_of_this_message(
    world: World, model: str, answer: Callable[[WireReply], Answer]
) -> None:
    world.write("agent.yaml", f"model: {model}\nworking_context: false\nfinders: false\nstrict_tools: true\n")
    world.toolbox.put("files", [tool("read"), tool("find", include="agent"), tool("grep", include="agent")])
    world.selector = FixedSelector({"one": {"files:find": 0.9, "files:grep": 0.8}, "two": {"files:grep": 0.9}})
    async with running(*[answer(WireReply((f"Answer {n}.",))) for n in range(3)]) as server:
        world.environ = _openai(server.url)
        async with world.engine() as engine:
            session = await engine.sessions.create()
            for message in ("one", "two", "three"):
                await drain(engine.turn(session.id, message))

    bodies = [asked.body for asked in server.asked]

    assert [allowed_in(body) for body in bodies] == [None, ["files__grep", "files__read"], ["files__read"]]
    # What may not be called now still stands in the list, so that the beginning of the prompt stays.
    assert bodies[0]["tools"] == bodies[1]["tools"] == bodies[2]["tools"]
    assert len(bodies[0]["tools"]) == 3


def allowed_in(body: Any) -> list[str] | None:
    """Return which tools a body allows, by name; None where it allows all."""
    choice: Any = body.get("tool_choice")
    if choice in (None, "auto"):
        return None
    assert choice["type"] == "allowed_tools"
    allowed: Any = choice.get("allowed_tools", choice)
    assert allowed["mode"] == "auto"
    return sorted(entry.get("function", entry)["name"] for entry in allowed["tools"])
