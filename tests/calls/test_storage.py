"""A call stores what is new in it, every body is put together again, and erasing leaves what never had the text."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.calls.body import join, keep
from windowpane.calls.skeleton import LONG_CHAIN, MOST_CHAINS, LastBody, chain_of, literals_in
from windowpane.context.events import MessageAdded
from windowpane.context.ids import BlobHash, content_hash
from windowpane.testing import World, drain, tool
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents")


@dataclass
class Kept:
    """What is stored of a row of bodies."""

    texts: dict[BlobHash, str] = field(default_factory=dict[BlobHash, str])
    names: list[BlobHash] = field(default_factory=list[BlobHash])
    last: LastBody | None = None

    def add(self, body: bytes) -> None:
        kept, self.last = keep(body, self.last)
        self.texts |= kept.blobs
        self.names.append(kept.name)

    def chain(self, number: int) -> list[BlobHash]:
        """Return the names of the skeletons that a body is read from."""
        name = self.names[number]
        return [name, *chain_of(self.texts[name], self.texts)]


def body_of(messages: list[Any], system: str = "You are one.") -> bytes:
    told = [{"role": "system", "content": system}, *messages]
    return json.dumps({"model": "m", "messages": told, "stream": True, "tools": []}).encode()


def said(number: int, length: int = 0) -> dict[str, Any]:
    return {"role": "user", "content": f"word{number}x " + "is said. " * length}


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 60)),
        st.tuples(st.just("drop"), st.integers(0, 5)),
        st.tuples(st.just("put"), st.integers(0, 60)),
        st.tuples(st.just("system"), st.integers(0, 60)),
    ),
    min_size=1,
    max_size=40,
)


@given(CHANGES)
@settings(max_examples=60, deadline=None)
def test_bodies_that_change_anywhere_are_read_again_and_say_all_that_they_are_compared_to(
    changes: list[tuple[str, int]],
) -> None:
    kept, bodies, messages, system = Kept(), list[bytes](), list[dict[str, Any]](), "You are one."
    for number, (change, size) in enumerate(changes):
        if change == "add":
            messages.append(said(number, size))
        elif change == "drop":
            del messages[size : size + 2]
        elif change == "put":
            messages.insert(0, said(number, size))
        else:
            system = f"word{number}x. " * size
        bodies.append(body_of(messages, system))
        kept.add(bodies[-1])

    assert [join(kept.texts[name], kept.texts) for name in kept.names] == bodies
    for number, body in enumerate(bodies):
        words = {f"word{each}x" for each in range(len(changes))}
        told = "".join(literals_in(kept.texts[name]) for name in kept.chain(number))
        assert {word for word in words if word in told} <= {word for word in words if word.encode() in body}


def test_a_long_conversation_is_read_from_few_skeletons_that_hold_each_message_about_twice() -> None:
    kept, messages = Kept(), list[dict[str, Any]]()
    for number in range(LONG_CHAIN * 8):
        messages += [said(number), {"role": "assistant", "content": f"Yes {number}."}]
        kept.add(body_of(messages))

    assert join(kept.texts[kept.names[-1]], kept.texts) == body_of(messages)
    assert max(len(kept.chain(number)) for number in range(len(kept.names))) <= LONG_CHAIN + 8 < MOST_CHAINS
    written = sum(len(kept.texts[name]) for name in kept.names)
    named = len(kept.names) * len(content_hash(""))
    assert written - named < 3 * len(body_of(messages))


def test_a_skeleton_that_an_earlier_version_wrote_is_read() -> None:
    system = "You are one. " * 20
    first = json.dumps({"pieces": ['{"messages":[', ["string", content_hash(system)], ',"Hi"', "]}"]})
    later = json.dumps({"first": content_hash(first), "head": 2, "tail": 1, "pieces": [',"Hi","Yes"']})
    texts = {content_hash(first): first, content_hash(system): system}

    assert join(first, texts).decode() == f'{{"messages":[{json.dumps(system)},"Hi"]}}'
    assert join(later, texts).decode() == f'{{"messages":[{json.dumps(system)},"Hi","Yes"]}}'


async def test_ten_calls_of_a_turn_and_of_the_next_store_little_more_than_what_is_new(world: World) -> None:
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nfinders: false\n")
    for number in range(33):
        world.rule(
            f"rule-{number}", f"Rule {number} says how a case of kind {number} is answered. " * 22, include="always"
        )
    world.toolbox.put("files", [tool("read", "Line {line} of the file is long. " * 125, permission="never")])
    async with running() as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.engine() as engine:
            session = (await engine.sessions.create()).id
            for turn in range(2):
                calls = [WireCall(f"c{turn}{step}", "files__read", (json.dumps({"line": step}),)) for step in range(9)]
                server.add(*(openai_chat.answer(WireReply(calls=(call,))) for call in calls))
                server.add(openai_chat.answer(WireReply(("That is all of it.",))))
                await drain(engine.turn(session, f"Read part {turn}."))
            recorded = await engine.calls.of_session(session)
            wires = [await engine.calls.wire(session, call) for call in recorded]
            kept = await engine.store.blobs(session, [call.body for call in recorded if call.body])

    assert [wire and wire.body for wire in wires] == [asked.raw for asked in server.asked]
    bodies = [len(asked.raw) for asked in server.asked]
    assert bodies[0] > 30_000
    skeletons = [len(kept[call.body]) for call in recorded if call.body]
    for turn in (0, 1):
        new = bodies[turn * 10 + 9] - (bodies[turn * 10 - 1] if turn else 0)
        # The rest of what is stored are texts that the body has, and some 600 bytes of events for each call.
        assert sum(skeletons[turn * 10 : turn * 10 + 10]) + 10 * 600 < 0.3 * new


async def test_a_call_that_never_had_a_removed_text_is_read_after_it_is_gone(world: World) -> None:
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\n")
    async with running(*(openai_chat.answer(WireReply((f"Answer {number}.",))) for number in range(5))) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.engine() as engine:
            session = (await engine.sessions.create()).id
            await drain(engine.turn(session, "Hello."))
            added = await engine.conversations.add(session, MessageAdded(role="user", content="PIN zephyr 4711"))
            for number in range(3):
                await drain(engine.turn(session, f"Question {number}?"))
            await engine.conversations.remove(session, added.seq)
            await drain(engine.turn(session, "Go on."))
            calls = [call for call in await engine.calls.of_session(session) if call.purpose == "answer"]
            wires = [await engine.calls.wire(session, call) for call in calls]

    sent = {hashlib.sha256(asked.raw).hexdigest(): asked.raw for asked in server.asked}
    bodies = [sent[call.sha256] for call in calls]
    had = [b"zephyr" in body for body in bodies]
    assert had == [False, True, True, True, False]
    assert [wire and wire.body for wire in wires] == [
        None if old else body for old, body in zip(had, bodies, strict=True)
    ]
