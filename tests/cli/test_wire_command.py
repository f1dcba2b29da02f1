"""`windowpane context --wire` and `windowpane cache`: calls as they were sent, whose each byte is, and the cache."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from cli.running import windowpane
from windowpane.agents.init import init_agent
from windowpane.context.events import Delta
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool
from wire import openai_chat
from wire.process import wire_process
from wire.reply import WireCall, WireReply
from wire.server import Answer, running

KEY = "sk-planted-key-0123456789"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents")


def test_a_call_is_printed_as_it_was_sent_with_the_owner_of_each_byte(tmp_path: Path) -> None:
    agent = init_agent(tmp_path / "agents" / "desk")
    (agent / "agent.yaml").write_text("model: openai:gpt-4o\nworking_context: false\n")
    script = tmp_path / "answers.json"
    script.write_text(json.dumps([{"text": "Hello."}]))
    with wire_process(script) as url:
        told = windowpane(
            tmp_path, "chat", "--message", "Who are you?", OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY=KEY
        )
    shown = windowpane(tmp_path, "context", "last", "--wire")

    assert told.code == 0, told.err
    assert f"POST {url}/v1/chat/completions" in shown.out
    assert '"messages":[{"role":"system","content":' in shown.out
    assert "11 in, 7 out" in shown.out
    assert KEY not in shown.out
    assert "message message" in shown.out
    assert "setting model" in shown.out


def test_what_broke_the_prefix_is_printed_below_its_call(tmp_path: Path) -> None:
    agent = init_agent(tmp_path / "agents" / "desk")
    prices = "{input: 10, output: 0, cache_read: 1}"
    (agent / "agent.yaml").write_text(
        f"model: openai:own\nworking_context: false\nprices: {{'openai:own': {prices}}}\n"
    )
    rule = agent / "rules" / "tone.md"
    rule.write_text("---\ninclude: always\n---\nBe brief. " + "Say what you know. " * 600)
    script = tmp_path / "answers.json"
    script.write_text(json.dumps([{"text": "Hello.", "input_tokens": 3000}] * 2))
    with wire_process(script) as url:
        base = f"{url}/v1"
        windowpane(tmp_path, "chat", "--message", "Who are you?", OPENAI_BASE_URL=base, OPENAI_API_KEY=KEY)
        rule.write_text("---\ninclude: always\n---\nBe polite. " + "Say what you know. " * 600)
        told = windowpane(
            tmp_path, "chat", "last", "--message", "And who am I?", OPENAI_BASE_URL=base, OPENAI_API_KEY=KEY
        )
    shown = windowpane(tmp_path, "cache", "last")
    read = json.loads(windowpane(tmp_path, "cache", "last", "--json").out)

    assert told.code == 0, told.err
    broke = read["calls"][1]["broke"]
    assert (broke["item"], broke["kind"], broke["reason"]) == (
        "rule:tone",
        "edited",
        "its text changed (re-base: the system prompt changed)",
    )
    cost = f"{broke['lost_tokens']:,} tokens billed again, ${broke['lost_tokens'] * 9 / 1_000_000:.6f}"
    assert f"the prefix broke at rule:tone ({broke['at']}), because {broke['reason']}: {cost}" in shown.out
    assert f"What broke the prefix ({cost}):\n  rule:tone: 1 break, {cost}\n" in shown.out


async def test_an_open_turn_is_shown_while_its_answer_streams_and_while_it_waits(world: World, tmp_path: Path) -> None:
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nfinders: false\n")
    world.toolbox.put("files", [tool("read", "It says hello.", permission="required")])
    world.store = SQLiteStore(tmp_path / "windowpane.db")
    first, *rest = openai_chat.frames(WireReply(("Let me", " look."), calls=(WireCall("c1", "files__read"),)))
    goes_on = asyncio.Event()
    answer = Answer((first, rest[0], goes_on, *rest[1:], openai_chat.DONE))
    async with running(answer, openai_chat.answer(WireReply(("It says hello.",)))) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}
        async with world.pane() as pane:
            session = (await pane.sessions.create()).id

            async def shown() -> dict[str, str]:
                kinds = ((), ("--call", "1"), ("--wire",))
                commands = [partial(windowpane, tmp_path, "context", "last", *kind) for kind in kinds]
                done = [await to_thread.run_sync(command) for command in commands]
                assert [(each.code, each.err) for each in done] == [(0, "")] * len(kinds)
                return {" ".join(kind): each.out for kind, each in zip(kinds, done, strict=True)}

            streaming: dict[str, str] = {}
            async for event in pane.turn(session, "What does the file say?"):
                if isinstance(event, Delta) and not streaming:
                    streaming = await shown()
                    goes_on.set()
            waiting = await shown()
            await drain(pane.approve(session, {"c1": "allow_once"}))

    body = server.asked[0].raw.decode()
    for views, outcome in ((streaming, "running"), (waiting, "complete 200")):
        assert f"  1 answer, step 1: {outcome}, " in views[""]
        assert views["--call 1"].startswith(f"1 answer, step 1: {outcome}, ")
        assert "What does the file say?" in views["--call 1"]
        assert body in views["--wire"]
