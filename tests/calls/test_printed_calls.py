"""What is printed of calls is what went over the wire: by `windowpane context` and `calls`, and by LLM_DEBUG_LOG."""

from __future__ import annotations

import io
import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from anyio import to_thread

from calls.printed import PRINTED_BEFORE, printed_body
from calls.test_ledger import KEY, PROVIDERS
from cli.running import windowpane
from windowpane.context.events import SummaryMade
from windowpane.context.ids import SessionId
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool
from wire.reply import WireCall, WireReply
from wire.server import Asked, running

TURNS = 7
SUMMARY = {"overview": "The user lists shades of paint.", "current_topic": "paint"}
SAID = ("messages", "input", "contents", "system", "instructions", "systemInstruction")
"""Where the protocols have what is said. Below these, some fields name things or are marks of the client library."""

NAMES = frozenset(
    (
        "role",
        "type",
        "id",
        "name",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "status",
        "cache_control",
        "thoughtSignature",
    )
)


def _texts(value: Any) -> list[str]:
    """Return the texts below a part of a body."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return [text for name, inner in fields if name not in NAMES for text in _texts(inner)]
    if isinstance(value, list):
        return [text for inner in cast("list[Any]", value) for text in _texts(inner)]
    return [value] if isinstance(value, str) else []


def _blocks(printed: str) -> list[str]:
    """Return the text that each request of the log says, without the bars in front of its lines."""
    blocks = printed.split(PRINTED_BEFORE)[1:]
    return ["\n".join(line.removeprefix("    │ ") for line in block.splitlines()) for block in blocks]


def _squeezed(text: str) -> str:
    """Return a text without the white space in which two writings of one JSON object differ."""
    return re.sub(r"\s", "", text)


def _assert_printed(printed: str, asked: Asked) -> None:
    """Make sure that everything that is said in a body stands in its block of the log."""
    block = _squeezed(printed)
    texts = [text for name in SAID if name in asked.body for text in _texts(asked.body[name])]
    assert texts
    # Some clients write two messages as one, with an empty line between.
    assert [part for text in texts for part in text.split("\n\n") if _squeezed(part) not in block] == []
    tools = re.findall(r'"name": ?"([\w-]+)"', json.dumps(asked.body.get("tools", [])))
    assert [name for name in tools if name not in printed] == []


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.spec("S4.76", "S4.77", "S4.78", "S4.79")
@pytest.mark.parametrize("name", PROVIDERS)
async def test_retries_tools_and_summaries_are_printed_as_they_were_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    provider = PROVIDERS[name]
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    settings = "working_context: false\nfinders: false\nmemory: {messages: 8}\n"
    world.write("agent.yaml", f"model: {provider.model}\n{settings}")
    world.toolbox.put("files", [tool("read", "The file says: ä 中.", permission="never", description="Read a file.")])
    call = WireCall("c1", "files__read", ('{"path": "ä.txt"}',))
    recorded = WireReply(calls=(WireCall("c9", "record_summary", (json.dumps(SUMMARY),)),))
    answers = [
        provider.problem(429),
        provider.problem(500),
        provider.answer(WireReply(("Let me see.",), calls=(call,))),
        *(provider.answer(WireReply((f"Noted {turn}.",))) for turn in range(1, TURNS + 1)),
        provider.answer(recorded),
    ]
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", printed)
    # How many requests had been printed when each one arrived.
    known: list[int] = []
    async with running(*answers) as server:
        server.refuses = lambda _: bool(known.append(printed.getvalue().count(PRINTED_BEFORE)))
        world.environ = provider.environ(server.url) | {"LLM_DEBUG_LOG": "true", "LLM_DEBUG_VERBOSE": "true"}
        async with world.pane() as pane:
            session = (await pane.sessions.create()).id
            for turn in range(1, TURNS + 1):
                await drain(pane.turn(session, f"Message {turn}: read the file “ä.txt”, please."))
            async for entry in pane.engine.store.subscribe(SessionId(session), after=0):
                if isinstance(entry.event, SummaryMade):
                    break
            of_turns = [len((await pane.turns.calls(session, turn)).calls) for turn in range(1, TURNS + 1)]

    assert known == [*range(1, TURNS + 5)]
    blocks = _blocks(printed.getvalue())
    for block, asked in zip(blocks, server.asked, strict=True):
        _assert_printed(block, asked)
    assert [re.findall(r"^\d+, attempt (\d)", block) for block in blocks[:4]] == [[], ["2"], ["3"], []]
    assert "call site: windowpane.memory" in blocks[-1]
    assert KEY not in printed.getvalue()

    shown = partial(to_thread.run_sync, partial(printed_body, tmp_path))
    bodies = [asked.raw.decode() for asked in server.asked]
    assert of_turns == [4, *[1] * (TURNS - 1)]
    assert [await shown(("calls", "last", f"{number}")) for number in range(1, len(bodies) + 1)] == bodies
    wires = [("context", "last", "1", "--call", f"{number}", "--wire") for number in range(1, 5)]
    assert [await shown(wire) for wire in wires] == bodies[:4]
    built = await to_thread.run_sync(partial(windowpane, tmp_path, "context", "last", "1", "--call", "4"))
    assert "The file says: ä 中." in built.out
    assert KEY not in built.out
