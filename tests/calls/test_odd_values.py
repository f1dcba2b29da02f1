"""A server answers with values of another kind than its protocol has: no turn spoils its session."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import pytest

from calls.laws import PRICES
from calls.test_ledger import PROVIDERS
from server.place import new_session, served
from windowpane.calls.answer import read_answer_bytes
from windowpane.calls.protocol import WireProtocol
from windowpane.calls.reply import fold_reply
from windowpane.context.messages import Usage
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool
from wire import anthropic_messages, google_gemini, ollama_chat, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Answer, running

pytestmark = pytest.mark.filterwarnings("ignore")  # of three client libraries, about what they were sent
CALL = WireCall("c1", "files__read", ('{"path"', ': "a"}'))
REPLY = WireReply(("Hello", " there."), thinking=("Hm.",), input_tokens=500, output_tokens=20)
ODD: tuple[Any, ...] = (7, -7, 0.5, 10**30, "x", "", None, True, [], ["x"], {}, {"x": 1})
TURNS = 24


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_value_of_another_kind_spoils_neither_the_session_nor_its_calls(tmp_path: Path, name: str) -> None:
    provider = PROVIDERS[name]
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    settings = "working_context: false\nfinders: false\nthinking: true\n"
    world.write("agent.yaml", f"model: {provider.model}\n{settings}prices:\n  {provider.model}: {PRICES}\n")
    world.toolbox.put("files", [tool("read", "It says “ä”.", permission="never")])
    whole = [provider.answer(replace(REPLY, calls=calls)) for calls in ((), (CALL,))]
    odd = [each for answer in whole for each in _with_odd_values(answer)]
    chosen = random.Random(name).sample(odd, TURNS)
    async with running() as server:
        world.environ = provider.environ(server.url)
        async with served(world) as http:
            session = await new_session(http)
            path = f"/api/sessions/{session}"
            for number, (changed, answer) in enumerate(chosen):
                server.forget()
                server.add(answer, *[provider.answer(REPLY)] * 4)
                asked = await http.post(f"{path}/messages", json={"content": f"Part {number}: “ä”?"})
                assert (asked.status_code, changed) == (200, changed), asked.text
                turn = asked.json()
                assert turn["outcome"] in ("completed", "failed"), (changed, turn)
                if turn["outcome"] == "failed":
                    assert turn["messages"][-1]["code"] != "internal", (changed, turn["messages"][-1])
                listed = await http.get(f"{path}/turns/{turn['turn']}/calls")
                assert listed.status_code == 200, (changed, listed.text)
            server.forget()
            server.add(provider.answer(REPLY))
            last = (await http.post(f"{path}/messages", json={"content": "And now?"})).json()
            calls = (await http.get(f"{path}/calls")).json()["calls"]
            bodies = [(await http.get(f"{path}/calls/{call['number']}")).json()["body"] for call in calls]
            while (board := (await http.get("/api/analytics")).json())["behind"]:
                pass

    assert (last["outcome"], last["text"]) == ("completed", "Hello there.")
    # A summary is made beside the next turn: which of the two was sent first is not the same everywhere.
    assert sorted(bodies) == sorted(asked.raw.decode() for asked in server.asked)
    assert board["spent"]["calls"] == len(calls)


def _with_odd_values(answer: Answer) -> Iterator[tuple[str, Answer]]:
    """Yield an answer again and again, each time with one odd value, and which it is."""
    for at, step in enumerate(answer.steps):
        assert isinstance(step, bytes)
        head, mark, data = step.partition(b"{")
        try:
            document = json.loads(mark + data)
        except ValueError:
            continue
        for holder, key in _places(document):
            kept = holder[key]
            for odd in ODD:
                holder[key] = odd
                changed = head + json.dumps(document).encode() + b"\n\n"
                steps = (*answer.steps[:at], changed, *answer.steps[at + 1 :])
                yield f"{at} {key}={odd!r}: {changed.decode()}", replace(answer, steps=steps)
            holder[key] = kept


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every value below, as what holds it and under which key."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        keys = list(range(len(cast("list[Any]", value))))
    for key in keys:
        yield value, key
        yield from _places(value[key])


ANSWERS: dict[WireProtocol, Callable[[WireReply], Answer]] = {
    "openai": openai_chat.answer,
    "openai-responses": openai_responses.answer,
    "anthropic": anthropic_messages.answer,
    "google": google_gemini.answer,
    "ollama": ollama_chat.answer,
}


@pytest.mark.parametrize("protocol", ANSWERS)
def test_an_answer_with_any_odd_value_is_read_for_what_it_says(protocol: WireProtocol) -> None:
    for calls in ((), (CALL,)):
        for changed, answer in _with_odd_values(ANSWERS[protocol](replace(REPLY, calls=calls))):
            body = b"".join(step for step in answer.steps if isinstance(step, bytes))
            facts, reply = read_answer_bytes(body), fold_reply(protocol, body)
            counts = asdict(facts.usage or Usage()).values()
            assert all(type(count) is int and 0 <= count <= 10**9 for count in counts), changed
            assert all(isinstance(each, str) for each in (reply.text, reply.thinking, reply.model)), changed
