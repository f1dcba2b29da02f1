"""What a model is told of the conversation, compared with what reached the provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spec.place import Folder, Product, selected, texts
from wire.reply import WireCall, WireReply

SUMMARY = {
    "overview": "The user sets up a build server.",
    "current_topic": "paint",
    "state": "active",
    "key_facts": ["The build server listens on port 8443"],
}


def debug(pane: Product, session: str, turn: int) -> dict[str, Any]:
    return pane.get(f"/sessions/{session}/turns/{turn}/debug")


def talk(pane: Product, session: str, turns: int) -> None:
    """Say so many things, each of which is answered."""
    pane.ask(session, "The build server listens on port 8443.", "Noted, number 1.")
    for number in range(2, turns + 1):
        pane.ask(session, f"Paint, shade {number}.", f"Noted, number {number}.")


def shop(pane: Product, name: str) -> Folder:
    """Return an agent with three guides; the first two name others that are related to them."""
    folder = pane.folder(name)
    folder.reference(
        "upload",
        "Upload photos with the button at the top of the page. Files may have 12 MB.",
        include="agent",
        title="Photo Upload Guide",
        related=["resize", "formats"],
    )
    folder.reference(
        "billing",
        "Invoices are sent on the first day of each month. A refund takes five days.",
        include="agent",
        title="Billing Guide",
        related=["upload"],
    )
    folder.reference("resize", "Make a picture smaller.", include="manual", title="Photo Resizing Guide")
    folder.reference("formats", "JPEG and PNG.", include="manual", title="File Formats")
    return folder


@pytest.mark.spec("S3.5", "S3.32")
def test_every_stored_message_is_counted_and_a_young_conversation_has_no_summary(pane: Product) -> None:
    session = pane.session(pane.folder("young"))

    talk(pane, session, 3)

    seen = [debug(pane, session, turn) for turn in (1, 2, 3)]
    assert [(turn["message_count"], turn["window_count"], turn["has_summary"]) for turn in seen] == [
        (0, 0, False),
        (2, 2, False),
        (4, 4, False),
    ]
    assert pane.get(f"/sessions/{session}")["message_count"] == 6


@pytest.mark.spec("S3.7", "S3.22")
def test_the_conversation_ends_with_the_question_and_its_length_is_that_of_its_text(pane: Product) -> None:
    session = pane.session(pane.folder("length"))

    talk(pane, session, 3)

    text = (
        "=== RECENT MESSAGES ===\n"
        "USER: The build server listens on port 8443.\nASSISTANT: Noted, number 1.\n\n"
        "USER: Paint, shade 2.\nASSISTANT: Noted, number 2.\n\n"
        "USER: Paint, shade 3."
    )
    seen = debug(pane, session, 3)
    assert (seen["conversation_context"], seen["context_length"]) == (text, len(text))
    assert [message for message in pane.sent["messages"] if message["role"] != "system"] == [
        {"role": "user", "content": "The build server listens on port 8443."},
        {"role": "assistant", "content": "Noted, number 1."},
        {"role": "user", "content": "Paint, shade 2."},
        {"role": "assistant", "content": "Noted, number 2."},
        {"role": "user", "content": "Paint, shade 3."},
    ]


@pytest.mark.spec("S3.6", "S3.12")
def test_the_summary_that_the_provider_is_sent_stands_first_in_the_conversation(pane: Product) -> None:
    session = pane.session(pane.folder("old"))
    talk(pane, session, 6)
    recorded = WireReply(calls=(WireCall("c1", "record_summary", (json.dumps(SUMMARY),)),))
    pane.ask(session, "Paint, shade 7.", "Noted, number 7.", recorded)
    pane.ok(pane.http.post(f"/api/sessions/{session}/summary"))

    pane.ask(session, "Where does the build server listen?")

    seen = debug(pane, session, 8)
    block = (
        "=== CONVERSATION SUMMARY ===\n"
        "Overview: The user sets up a build server.\n"
        "Current Topic: paint\n"
        "State: active\n"
        "Key Facts: The build server listens on port 8443"
    )
    assert seen["has_summary"] is True
    assert seen["conversation_context"].startswith(f"{block}\n\n=== RECENT MESSAGES ===\nUSER: ")
    assert sum(block in text for text in texts(pane.sent, "user")) == 1


@pytest.mark.spec("S3.39")
def test_recent_sources_are_the_documents_whose_texts_the_provider_was_sent_latest_first(pane: Product) -> None:
    session = pane.session(shop(pane, "sources"))
    sent: list[list[bool]] = []
    for message in ("How do I upload photos?", "When do I get my refund for the invoice?"):
        pane.ask(session, message)
        sent.append([words in str(pane.sent["messages"]) for words in ("Files may have 12 MB.", "takes five days")])
    pane.ask(session, "Thanks, that's all.")

    assert [sent[0][0], sent[1][1]] == [True, True]
    assert debug(pane, session, 3)["recent_sources_used"] == ["Billing Guide", "Photo Upload Guide"]
    why = pane.get(f"/sessions/{session}/turns/1/explain/reference/upload")
    assert (why["included"], why["mode"], why["evidence"]["score"] > why["evidence"]["floor"]) == (True, "agent", True)


@pytest.mark.spec("S3.3", "S3.10")
def test_the_reply_to_a_message_names_its_session_its_sources_and_what_the_model_was_told(pane: Product) -> None:
    session = pane.session(shop(pane, "reply"))

    reply = pane.ask(session, "How do I upload photos?", "With the button.")

    assert (reply["session_id"], reply["text"]) == (session, "With the button.")
    assert [source["title"] for source in reply["sources"]] == ["Photo Upload Guide"]
    assert reply["confidence"] == reply["sources"][0]["score"]
    assert reply["context_debug"] == debug(pane, session, 1)
    assert pane.get(f"/sessions/{session}/turns/1")["context_debug"] == reply["context_debug"]
    plain = pane.ask(pane.session(pane.folder("plain")), "Hi", "Hello.")
    assert (plain["sources"], plain["confidence"]) == ([], None)


@pytest.mark.spec("S3.11", "S3.14")
def test_the_conversation_is_what_the_provider_was_sent_with_tool_results_and_the_sources_of_answers(
    pane: Product,
) -> None:
    folder = shop(pane, "told")
    echo = {"name": "echo", "description": "Says what it is given."}
    folder.agent(mcpServers={"desk": folder.tools("desk", [echo], permission="not_required")}, finders=False)
    session = pane.session(folder)
    pane.get("/agents/told/servers")
    called = WireReply(calls=(WireCall("c1", "desk__echo", ('{"text": "twelve"}',)),))
    score = pane.ask(session, "How do I upload photos?", called, "With the button.")["confidence"]

    pane.ask(session, "Thanks, that's all.", WireReply(text=("Wait.",), calls=called.calls), "Bye.")

    said = [message for message in pane.sent["messages"] if message["role"] != "system"]
    sources = said[4]["content"].splitlines()
    roles = ["user", "assistant", "tool", "assistant", "user", "user", "assistant", "tool"]
    assert [message["role"] for message in said] == roles
    assert sources[1:-1] == [
        f"   📚 Sources: Photo Upload Guide (confidence: {score:.2f})",
        "   📌 Related: Photo Resizing Guide, File Formats",
    ]
    # Only the system knows the code of the lines around them.
    code = sources[0].removeprefix("[[context ").removesuffix("]]")
    assert (sources[0], sources[-1]) == (f"[[context {code}]]", f"[[end {code}]]")
    assert any(code in text for text in texts(pane.sent, "system"))
    text = "\n".join(
        (
            "=== RECENT MESSAGES ===",
            f"USER: {said[0]['content']}",
            f"TOOL: {said[2]['content']}",
            f"ASSISTANT: {said[3]['content']}",
            *sources[1:-1],
            "",
            f"USER: {said[5]['content']}",
            f"ASSISTANT: {said[6]['content']}",
            f"TOOL: {said[7]['content']}",
        )
    )
    seen = debug(pane, session, 2)
    assert (seen["conversation_context"], seen["context_length"]) == (text, len(text))
    topics = {
        topic: pane.get(f"/sessions/{session}/turns/2/debug", topic=topic)["warnings"]
        for topic in ("twelve", "Says what it is given", "Resizing Guide", "Miezi")
    }
    assert [topic for topic, warnings in topics.items() if warnings] == ["Miezi"]


@pytest.mark.spec("S3.40", "S3.43")
def test_the_documents_that_are_related_to_recent_sources_are_there_for_a_follow_up(pane: Product) -> None:
    session = pane.session(shop(pane, "related"))
    for message in ("How do I upload photos?", "When do I get my refund for the invoice?"):
        pane.ask(session, message)
    context = pane.ask(session, "What about resizing?")["request_context"]

    related = debug(pane, session, 3)["available_related_documents"]
    assert related == ["Photo Upload Guide", "Photo Resizing Guide", "File Formats"]
    assert "'Photo Resizing Guide'" in context["query"]["reason"]
    assert "reference:resize" not in selected(context)
