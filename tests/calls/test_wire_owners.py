"""Every byte that was sent has an owner, and what the client library made different is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calls.test_ledger import PROVIDERS, Provider
from windowpane.api.turns import CallRecord
from windowpane.testing import World, drain, tool
from windowpane.text.tokens import message_tokens
from wire.reply import WireCall, WireReply
from wire.server import running

RULE = "Be brief: “short” sentences only, please. " * 3


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents")


def owned(record: CallRecord) -> dict[tuple[str, str], str]:
    """Return what each owner owns of a body."""
    assert record.body is not None
    found: dict[tuple[str, str], str] = {}
    for span in record.spans:
        key = (span.kind, span.owner)
        found[key] = found.get(key, "") + record.body[span.start : span.end]
    return found


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
async def test_every_byte_of_a_call_has_an_owner(world: World, provider: Provider) -> None:
    world.write("agent.yaml", f"model: {provider.model}\nworking_context: false\ntemperature: 0.5\n")
    world.rule("tone", RULE, include="always")
    world.toolbox.put("files", [tool("read", "The file says: “ä”.", permission="never")])
    call = WireCall("c1", "files__read", (json.dumps({"path": "ä.txt"}),))
    answers = [
        provider.answer(WireReply(("Hello there.",))),
        provider.answer(WireReply(("Let me see.",), calls=(call,))),
        provider.answer(WireReply(("Done.",))),
    ]
    async with running(*answers) as server:
        world.environ = provider.environ(server.url)
        async with world.pane() as pane:
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, "Hi, I am “Ada”."))
            await drain(pane.turn(session.id, "Read “ä.txt”, please."))
            listed = await pane.turns.calls(session.id, 2)
            first = await pane.turns.call(session.id, 2, 1)
            second = await pane.turns.call(session.id, 2, 2)

    assert [(call.number, call.step, call.outcome) for call in listed.calls] == [(1, 1, "complete"), (2, 2, "complete")]
    assert (first.added, second.added) == (len(first.messages), 2)
    assert second.message_tokens == tuple(map(message_tokens, second.messages))
    for record, asked in ((first, server.asked[1]), (second, server.asked[2])):
        assert record.body is not None
        assert record.body == asked.raw.decode()
        assert record.spans[0].start == 0
        assert record.spans[-1].end == len(record.body)
        assert all(one.end == other.start for one, other in zip(record.spans, record.spans[1:], strict=False))
    mine = owned(second)
    assert ".txt" in mine["message", "message"]
    assert "short" in mine["item", "rule:tone"]
    assert "files__read" in mine["tool", "files:read"]
    assert "The file says" in "".join(text for (kind, _), text in mine.items() if kind == "step")
    assert "Hello there." in "".join(text for (_, owner), text in mine.items() if owner.startswith("history"))
    assert "0.5" in "".join(text for (kind, _), text in mine.items() if kind == "setting")
    assert not set("".join(mine.get(("mapping", "the protocol's own JSON"), ""))) & set("äBR")
