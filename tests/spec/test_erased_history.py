"""What is left of a conversation that was erased: nothing that it said, and nothing that it allowed."""

from __future__ import annotations

from spec.place import Product, selected
from wire import openai_chat
from wire.reply import WireCall, WireReply

ECHO = {"name": "echo", "description": "Say what you are told"}


def call(number: int) -> WireReply:
    return WireReply(calls=(WireCall(f"c{number}", "desk__echo", ('{"text": "hello"}',)),))


def test_no_text_that_its_requests_were_made_of_is_kept(pane: Product) -> None:
    folder = pane.folder("erased")
    folder.rule("tone", "Be kind.", include="always")
    folder.reference("billing", "A refund takes five days.", include="agent", description="Invoices and refunds")
    folder.reference("unsent", "Nothing is said about this.", include="manual")
    session = pane.session(folder)
    asked = pane.ask(session, "When do I get my refund for the invoice?", "In five days.")
    before = pane.get(f"/sessions/{session}/export")

    pane.ok(pane.http.delete(f"/api/sessions/{session}/history"))

    after = pane.get(f"/sessions/{session}/export")
    assert selected(asked["request_context"]) == ["reference:billing"]
    assert len(before["blobs"]) > 3
    assert after["blobs"] == {}
    assert [entry["event"]["type"] for entry in after["events"]] == [
        "session.created",
        *["erased"] * (len(before["events"]) - 1),
        "history.cleared",
    ]
    assert pane.get(f"/sessions/{session}/messages") == {"messages": [], "before": None}


def test_a_tool_that_was_allowed_for_the_session_asks_again(pane: Product) -> None:
    folder = pane.folder("asks-again")
    folder.agent(mcpServers={"desk": folder.tools("desk", [ECHO])})
    session = pane.session(folder)
    first = pane.ask(session, "Say hello", call(1))
    pane.wire.add(openai_chat.answer(WireReply(text=("Done.",))))
    allowed = pane.ok(pane.http.post(f"/api/sessions/{session}/approvals", json={"decisions": {"c1": "allow_session"}}))
    second = pane.ask(session, "Say hello", call(2), "Done.")

    pane.ok(pane.http.delete(f"/api/sessions/{session}/history"))
    third = pane.ask(session, "Say hello", call(3))

    assert [turn["outcome"] for turn in (first, allowed, second, third)] == [
        "waiting",
        "completed",
        "completed",
        "waiting",
    ]
