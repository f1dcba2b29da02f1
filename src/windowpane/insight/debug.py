"""What a turn's model was told of the conversation, for people who wonder what it remembered.

Everything comes from the record of the turn and from the log before it; nothing is worked out again.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import islice

from windowpane.api.turns import Band, ContextDebug
from windowpane.context.messages import AssistantMessage, Message
from windowpane.context.request import Request, RequestMessage

CHARACTERS_PER_TOKEN = 4
RECENT_SOURCES = 5
RELATED_DOCUMENTS = 10


def context_debug(request: Request, before: Sequence[Message], *, topic: str | None = None) -> ContextDebug:
    """Return what a turn's model was told of the conversation.

    `before` are the messages before the turn, oldest first. With `topic`, it is said whether the model could know it.
    """
    answers = [message for message in before if isinstance(message, AssistantMessage)]
    text = conversation_context(request, {answer.seq: answer for answer in answers})
    history = {message.name for message in request.messages if message.part == "history"}
    latest_first = answers[::-1]
    sources = (source.title for answer in latest_first for source in answer.sources)
    related = (title for answer in latest_first for title in answer.related)
    return ContextDebug(
        conversation_context=text,
        message_count=request.context.message_count,
        window_count=len(history),
        has_summary=any(message.part == "summary" for message in request.messages),
        context_length=len(text),
        band=_band(len(text)),
        estimated_tokens=math.ceil(len(text) / CHARACTERS_PER_TOKEN),
        recent_sources_used=_first(sources, RECENT_SOURCES),
        available_related_documents=_first(related, RELATED_DOCUMENTS),
        warnings=tuple(_warnings(request.context.message_count, text, topic)),
    )


def conversation_context(request: Request, answers: dict[int, AssistantMessage]) -> str:
    """Return the conversation as the model was given it: summary, messages with their sources, the question."""
    summary = [_unframed(message.content) for message in request.messages if message.part == "summary"]
    exchanges: list[str] = []
    for message in request.messages:
        if message.part == "history" and message.role == "user":
            exchanges.append(f"USER: {message.content}")
        elif message.part == "history" and message.role == "assistant" and message.content:
            answer = "\n".join((f"ASSISTANT: {message.content}", *_source_lines(answers.get(_seq(message)))))
            exchanges[-1:] = [f"{exchanges[-1]}\n{answer}"] if exchanges else [answer]
    question = [f"USER: {message.content}" for message in request.messages if message.part == "message"]
    recent = "=== RECENT MESSAGES ===\n" + "\n\n".join((*exchanges, *question))
    return "\n\n".join((*summary, recent))


def _source_lines(answer: AssistantMessage | None) -> list[str]:
    if answer is None:
        return []
    lines: list[str] = []
    if answer.sources:
        titles = ", ".join(f"{source.title} (confidence: {source.score:.2f})" for source in answer.sources)
        lines.append(f"   📚 Sources: {titles}")
    if answer.related:
        lines.append(f"   📌 Related: {', '.join(answer.related)}")
    return lines


def _seq(message: RequestMessage) -> int:
    return int(message.name.rpartition(" ")[2])


def _unframed(content: str) -> str:
    return content.partition("\n")[2].rpartition("\n")[0]


def _first(titles: Iterable[str], count: int) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(titles), count))


def _band(length: int) -> Band:
    if length <= 500:
        return "short"
    if length <= 2000:
        return "medium"
    return "large" if length <= 8000 else "very large"


def _warnings(message_count: int, text: str, topic: str | None) -> Iterable[str]:
    if message_count == 0:
        yield "No conversation history!"
    if topic and topic.casefold() not in text.casefold():
        yield f"Previous topic not in context: {topic}"
    if _band(len(text)) == "very large":
        yield f"The context grew very large ({len(text):,} characters)."
