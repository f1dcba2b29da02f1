from __future__ import annotations

from datetime import UTC, datetime

import pytest

from windowpane.api.turns import ContextDebug
from windowpane.context.ids import RequestId
from windowpane.context.messages import (
    AssistantMessage,
    Message,
    ModelReply,
    Source,
    Step,
    ToolCall,
    ToolResult,
    UserMessage,
)
from windowpane.context.request import (
    Budget,
    CallSettings,
    PartKind,
    Query,
    Request,
    RequestContext,
    RequestMessage,
    Role,
)
from windowpane.context.summary import Summary
from windowpane.insight.debug import context_debug
from windowpane.search.query import query, said
from windowpane.text.blocks import summary_block
from windowpane.text.render import enclosed, render_sources

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SUMMARY = Summary(
    overview="The user prepares photos for print.",
    current_topic="Upload limits",
    state="active",
    key_facts=("files are 12 MB", "/photos/holiday"),
    through_seq=4,
)
GUIDE = Source(title="Photo Upload Guide", score=0.9234)


def sent(role: Role, content: str, part: PartKind, name: str = "") -> RequestMessage:
    return RequestMessage(role=role, content=content, part=part, name=name)


def answer(seq: int, text: str, sources: tuple[Source, ...] = (), related: tuple[str, ...] = ()) -> AssistantMessage:
    reply = ModelReply((Step(text=text),))
    return AssistantMessage(model_reply=reply, sources=sources, related=related, seq=seq, at=NOW)


def request(*messages: RequestMessage, message_count: int) -> Request:
    context = RequestContext(
        id=RequestId("req_1"),
        turn=3,
        timestamp=NOW,
        agent="pane",
        settings=CallSettings(model="echo"),
        query=Query(text=""),
        items=(),
        budget=Budget(window_tokens=1, reply_tokens=0, used_tokens=0),
        message_count=message_count,
    )
    return Request(messages=(sent("system", "You are Pane.", "core"), *messages), tools=(), context=context)


BEFORE: tuple[Message, ...] = (
    UserMessage(content="How do I upload photos?", seq=5, at=NOW),
    answer(8, "Use the upload button.", (GUIDE,), ("Photo Resizing Guide", "Formats")),
)
TURN = (
    sent("user", enclosed("012345678901", summary_block(SUMMARY).text), "summary"),
    sent("user", "How do I upload photos?", "history", "message 5"),
    sent("assistant", "Use the upload button.", "history", "message 8"),
    sent("user", enclosed("012345678901", render_sources(BEFORE[1])), "sources", "message 8"),
    sent("user", "What about resizing?", "message"),
)


@pytest.mark.spec("S3.4", "S3.8", "S3.9", "S3.15", "S3.16", "S3.18-S3.21", "S3.25", "S3.30", "S3.33", "S3.57")
def test_a_turn_shows_exactly_what_its_model_was_told_of_the_conversation() -> None:
    text = """=== CONVERSATION SUMMARY ===
Overview: The user prepares photos for print.
Current Topic: Upload limits
State: active
Key Facts: files are 12 MB, /photos/holiday

=== RECENT MESSAGES ===
USER: How do I upload photos?
ASSISTANT: Use the upload button.
   📚 Sources: Photo Upload Guide (confidence: 0.92)
   📌 Related: Photo Resizing Guide, Formats

USER: What about resizing?"""

    assert context_debug(request(*TURN, message_count=6), BEFORE) == ContextDebug(
        conversation_context=text,
        message_count=6,
        window_count=2,
        has_summary=True,
        context_length=len(text),
        band="short",
        estimated_tokens=-(-len(text) // 4),
        recent_sources_used=("Photo Upload Guide",),
        available_related_documents=("Photo Resizing Guide", "Formats"),
        warnings=(),
    )


@pytest.mark.spec("S3.23", "S3.27", "S3.52", "S3.64")
def test_a_new_conversation_has_no_summary_and_says_that_there_is_no_history() -> None:
    debug = context_debug(request(sent("user", "Hello", "message"), message_count=0), ())

    assert debug.conversation_context == "=== RECENT MESSAGES ===\nUSER: Hello"
    assert (debug.message_count, debug.window_count, debug.has_summary) == (0, 0, False)
    assert debug.warnings == ("No conversation history!",)


@pytest.mark.spec("S3.53")
@pytest.mark.parametrize(("topic", "warned"), [("upload PHOTOS", False), ("billing", True)])
def test_a_topic_that_the_model_could_not_know_is_named(topic: str, warned: bool) -> None:
    debug = context_debug(request(*TURN, message_count=6), BEFORE, topic=topic)

    assert debug.warnings == ((f"Previous topic not in context: {topic}",) if warned else ())


def test_tool_results_stand_in_their_exchange_and_what_was_brought_in_stands_before_the_question() -> None:
    def framed(text: str, part: PartKind) -> RequestMessage:
        return sent("user", enclosed("012345678901", text), part)

    call = ToolCall("c2", "files__read", '{"path": "/photos"}')
    asked = Step(text="Reading.", tool_calls=(call,), results=(ToolResult("c2", "two files"),))
    question = request(
        sent("user", "How many photos?", "history", "message 5"),
        sent("assistant", "", "history", "message 8"),
        sent("tool", "one file", "history", "message 8"),
        sent("assistant", "One.", "history", "message 8"),
        framed("Earlier, turn 1, 1 May 2026:\nUSER: My cat is Miezi.", "recall"),
        framed("Earlier, turn 2, 1 May 2026:\nUSER: She eats tuna.", "recall"),
        framed("Web page: Tides", "fetched"),
        sent("user", "And now?", "message"),
        message_count=6,
    )

    debug = context_debug(question, (), steps=(asked,), topic="/photos")

    assert (debug.conversation_context, debug.warnings) == (
        "=== RECENT MESSAGES ===\n"
        "USER: How many photos?\nTOOL: one file\nASSISTANT: One.\n\n"
        "=== RECALLED MESSAGES ===\n"
        "Earlier, turn 1, 1 May 2026:\nUSER: My cat is Miezi.\n\n"
        "Earlier, turn 2, 1 May 2026:\nUSER: She eats tuna.\n\n"
        "=== FETCHED CONTEXT ===\nWeb page: Tides\n\n"
        "USER: And now?\nASSISTANT: Reading.\nTOOL: two files",
        (),
    )


@pytest.mark.spec("S3.37", "S3.38", "S3.41")
def test_sources_and_related_documents_are_unique_latest_first_and_few() -> None:
    answers = [
        answer(seq, "", (Source(title=f"S{seq % 7}", score=1),), (f"R{seq % 12}", f"R{seq % 5}")) for seq in range(30)
    ]

    debug = context_debug(request(*TURN, message_count=30), answers)

    assert debug.recent_sources_used == ("S1", "S0", "S6", "S5", "S4")
    assert len(debug.available_related_documents) == 10
    assert debug.available_related_documents[:3] == ("R5", "R4", "R3")


@pytest.mark.spec("S3.34")
@pytest.mark.parametrize(("length", "band"), [(450, "short"), (1000, "medium"), (5000, "large"), (9000, "very large")])
def test_the_size_of_the_context_has_a_name_and_very_large_ones_a_warning(length: int, band: str) -> None:
    question = sent("user", "x" * (length - len("=== RECENT MESSAGES ===\nUSER: ")), "message")

    debug = context_debug(request(question, message_count=2), ())

    assert (debug.context_length, debug.band) == (length, band)
    assert bool(debug.warnings) == (band == "very large")


@pytest.mark.spec("S3.55", "S3.43")
def test_a_follow_up_can_be_checked_against_the_related_documents() -> None:
    unlinked = (BEFORE[0], answer(8, "Use the upload button.", (GUIDE,), ("Formats",)))
    related = [
        context_debug(request(*TURN, message_count=6), before).available_related_documents
        for before in (BEFORE, unlinked)
    ]

    reasons = [query("What about resizing?", said(BEFORE), titles).reason for titles in related]

    assert related == [("Photo Resizing Guide", "Formats"), ("Formats",)]
    assert ["'Photo Resizing Guide'" in reason for reason in reasons] == [True, False]
