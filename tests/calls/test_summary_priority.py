"""A summary never keeps the user waiting: the next message goes first, and what was dropped is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from windowpane.context.events import SummaryMade
from windowpane.context.ids import SessionId
from windowpane.testing import World, drain
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import Answer, running

SUMMARY = {"overview": "The user lists shades of paint.", "current_topic": "paint"}
SILENT = {
    "before its head": Answer(("until_gone",), status=None),
    "within its words": Answer((openai_chat.delta({"role": "assistant", "content": "Well"}), "until_gone")),
}


@pytest.mark.parametrize("silent", SILENT.values(), ids=SILENT)
async def test_the_next_message_ends_the_call_for_a_summary_which_is_made_after_it(
    tmp_path: Path, silent: Answer
) -> None:
    world = World(tmp_path / "agents")
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nmemory: {messages: 8}\n")
    written = WireReply(calls=(WireCall("c1", "record_summary", (json.dumps(SUMMARY),)),), input_tokens=900)
    answers = [openai_chat.answer(WireReply((f"Noted {number}.",))) for number in range(8)]
    async with running(*answers[:7], silent, answers[7], openai_chat.answer(written)) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        with capture_logs() as logs:
            async with world.pane() as pane:
                session = await pane.sessions.create()
                for number in range(7):
                    await drain(pane.turn(session.id, f"Shade {number} of the wall in the hall."))
                given_up = await server.wait_for_requests(8)
                await drain(pane.turn(session.id, "And the door?"))
                await given_up.gone.wait()
                async for entry in pane.engine.store.subscribe(SessionId(session.id), after=0):
                    if isinstance(entry.event, SummaryMade):
                        break
                made = await pane.sessions.summary(session.id)
                calls = (await pane.sessions.calls(session.id)).calls

    assert [(call.purpose, call.turn, call.outcome) for call in calls[7:]] == [
        ("summary", None, "retried"),
        ("answer", 8, "complete"),
        ("summary", None, "complete"),
    ]
    assert made is not None
    assert made.overview == SUMMARY["overview"]
    dropped = [entry for entry in logs if entry["event"] == "summary.dropped"]
    assert [(entry["session"], entry["model"], entry["why"]) for entry in dropped] == [
        (session.id, "openai:gpt-4o", "the next message came first")
    ]
