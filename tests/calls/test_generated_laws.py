"""Conversations at random through the HTTP door, on five protocols: the ledger holds every request and every token.

What a turn meets is drawn: tool calls side by side, arguments that are no JSON, an unknown tool, an answer without
words, thinking, one that is cut at its limit, errors that are tried again, compressed answers, and a stream that breaks
off, without or with a report. Spans, metrics, the debug log and the command line tell the same.
"""

from __future__ import annotations

import gzip
import io
import random
import re
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from calls.laws import PRICES, assert_laws
from calls.printed import PRINTED_BEFORE, printed_bodies, printed_body
from calls.test_laws import IMAGE
from calls.test_ledger import PROVIDERS
from cli.running import windowpane
from server.place import new_session, served
from windowpane import telemetry
from windowpane.cli.terminal import counted
from windowpane.context.messages import Usage
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool
from wire.reply import WireCall, WireReply
from wire.server import Answer, running

LIMITS = {"openai": "length", "ollama": "length", "responses": "max_output_tokens", "anthropic": "max_tokens"}
STRICT = frozenset(("google",))
"""Protocols in which a call's arguments are an object on the wire, and thinking has no words of its own."""


class Script:
    """Answers of a server at random, and what it reports in all of them."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name, self.chance, self.provider = name, chance, PROVIDERS[name]
        self.answers: list[Answer] = []
        self.served = Usage()
        self.without_usage = 0
        self._calls = 0

    def turn(self) -> None:
        """Add what one turn meets."""
        for _ in range(self.chance.randint(0, 2)):
            self._interrupted()
            self._said(replace(self._reply(), calls=self._tool_calls()))
        self._interrupted()
        self.chance.choice((self._plain, self._compressed, self._limited, self._broken, self._empty))()

    def _reply(self) -> WireReply:
        cached = self.chance.randint(0, 300) if self.name not in STRICT else 0
        thinking = ("Hm “ä”.", " So.") if self.chance.random() < 0.4 else ()
        return WireReply(
            ("Let me “see”.", " Yes 中."),
            thinking=thinking,
            input_tokens=self.chance.randint(400, 900),
            output_tokens=self.chance.randint(1, 90),
            cached_tokens=cached,
            written_tokens=self.chance.randint(0, 50) if self.name == "anthropic" else 0,
        )

    def _tool_calls(self) -> tuple[WireCall, ...]:
        broken = () if self.name in STRICT else (('{"path": ',), ("",), ("[]",))
        found: list[WireCall] = []
        for _ in range(self.chance.randint(1, 3)):
            self._calls += 1
            arguments = self.chance.choice((('{"path"', ': "ä"}'), ("{}",), *broken))
            tool_name = self.chance.choice(("files__read", "files__empty", "files__fails", "files__invented"))
            found.append(WireCall(f"c{self._calls}", tool_name, arguments))
        return tuple(found)

    def _said(self, reply: WireReply) -> None:
        self.answers.append(self.provider.answer(reply))
        self._count(reply)

    def _count(self, reply: WireReply) -> None:
        beside = reply.cached_tokens + reply.written_tokens if self.name == "anthropic" else 0
        self.served += Usage(
            reply.input_tokens + beside, reply.output_tokens, reply.cached_tokens, reply.written_tokens
        )

    def _interrupted(self) -> None:
        if self.chance.random() < 0.3:
            self.answers.append(self.provider.problem(self.chance.choice((500, 503, 429))))
            self.without_usage += 1

    def _plain(self) -> None:
        self._said(self._reply())

    def _compressed(self) -> None:
        reply = self._reply()
        whole = self.provider.answer(reply)
        packed = gzip.compress(b"".join(step for step in whole.steps if isinstance(step, bytes)))
        halves = packed[: len(packed) // 2], packed[len(packed) // 2 :]
        self.answers.append(Answer(halves, headers={**whole.headers, "content-encoding": "gzip"}))
        self._count(reply)

    def _limited(self) -> None:
        self._said(replace(self._reply(), finish=LIMITS.get(self.name, "MAX_TOKENS")))

    def _empty(self) -> None:
        # Gemini has no answer without a part.
        self._said(self._reply() if self.name in STRICT else replace(self._reply(), text=(), thinking=()))

    def _broken(self) -> None:
        reply = replace(self._reply(), thinking=())
        steps = self.provider.answer(reply).steps
        at = {"openai": 2, "ollama": 2, "responses": 5, "anthropic": 4, "google": 1}[self.name]
        self.answers.append(Answer((*steps[:at], "cut")))
        if self.name == "anthropic":
            self._count(replace(reply, output_tokens=1))
        elif self.name == "google":
            self._count(reply)
        else:
            self.without_usage += 1


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_conversation_at_random_is_in_the_ledger_to_the_byte_and_to_the_cent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, seed: int
) -> None:
    printed, measured = io.StringIO(), list[telemetry.Measured]()
    monkeypatch.setattr(sys, "stderr", printed)
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    model = PROVIDERS[name].model
    world.write(
        "agent.yaml",
        f"model: {model}\nworking_context: false\nfinders: false\nthinking: true\nprices:\n  {model}: {PRICES}\n",
    )
    world.rule("tone", "Be brief: “short” sentences. " * 20, include="always")
    world.toolbox.put(
        "files",
        [
            tool("read", "The file says: “ä 中”.", permission="never"),
            tool("empty", "", permission="never"),
            tool("fails", "{unknown}", permission="never"),
        ],
    )
    script = Script(name, random.Random(f"{name}-{seed}"))
    turns = 4
    for _ in range(turns):
        script.turn()
    async with running(*script.answers) as server:
        world.environ = PROVIDERS[name].environ(server.url) | {"LLM_DEBUG_LOG": "true"}
        with telemetry.listening(lambda _: None, measured.append):
            async with served(world) as http:
                session = await new_session(http)
                for number in range(turns):
                    files = [{"name": "cat.png", "data": IMAGE}] if number == 1 else []
                    body = {"content": f"Part {number}: “ä”?", "attachments": files}
                    answer = await http.post(f"/api/sessions/{session}/messages", json=body)
                    assert answer.status_code == 200, answer.text
                assert len(server.asked) == len(script.answers)
                await assert_laws(http, server, [session], script.served, without_usage=script.without_usage)
                listed = (await http.get(f"/api/sessions/{session}/calls")).json()
    assert _measured_usage(measured) == replace(script.served, cache_write_1h_tokens=0)
    assert printed.getvalue().count(PRINTED_BEFORE) == len(server.asked)
    bodies = [asked.raw.decode() for asked in server.asked]
    some = sorted(script.chance.sample(range(1, len(bodies) + 1), 2))
    assert await to_thread.run_sync(printed_bodies, tmp_path, some) == [bodies[number - 1] for number in some]
    await to_thread.run_sync(_assert_commands, tmp_path, listed, bodies, script)


def _assert_commands(data: Path, listed: dict[str, Any], bodies: list[str], script: Script) -> None:
    """Make sure that the command line tells of one call what it told of it in its turn, and of all the same sums."""
    at = script.chance.randrange(len(bodies))
    turn = listed["calls"][at]["turn"]
    place = [call["number"] for call in listed["calls"] if call["turn"] == turn].index(at + 1) + 1
    one = ("context", "last", f"{turn}", "--call", f"{place}")
    assert printed_body(data, (*one, "--wire")) == bodies[at]
    built = windowpane(data, *one)
    assert (built.code, built.err, f"Part {turn - 1}: “ä”?" in built.out) == (0, "", True)
    printed = windowpane(data, "calls", "last").out
    lines = [line for line in printed.splitlines() if re.match(r"  turn \d+: \d+ answer, ", line)]
    assert [_tokens_of_line(line) for line in lines] == [_tokens_of_call(call) for call in listed["calls"]]
    used, cost = script.served, Decimal(listed["cost_usd"])
    assert f"together: {used.input_tokens:,} tokens in, {used.output_tokens:,} out, ${cost:.6f}" in printed
    assert (f"{counted(script.without_usage, 'call')} without" in printed) == bool(script.without_usage)


def _tokens_of_line(line: str) -> tuple[str, str] | None:
    found = re.search(r"([\d,]+) in(?: \([\d,]+ cached\))?, ([\d,]+) out", line)
    assert found or "usage unknown" in line
    return (found[1], found[2]) if found else None


def _tokens_of_call(call: dict[str, Any]) -> tuple[str, str] | None:
    used = call["usage"]
    return (f"{used['input_tokens']:,}", f"{used['output_tokens']:,}") if used else None


def _measured_usage(measured: list[telemetry.Measured]) -> Usage:
    """Return what the spans of all model calls say that they used."""
    kinds = ("input_tokens", "output_tokens", "cache_read.input_tokens", "cache_creation.input_tokens")
    calls = [each.attributes for each in measured if each.operation == "model_call"]
    return Usage(*(sum(int(str(call.get(f"gen_ai.usage.{kind}", 0))) for call in calls) for kind in kinds))
