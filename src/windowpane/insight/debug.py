"""What a turn's model was told of the conversation, for people who wonder what it remembered.

Everything comes from the messages that the turn's last call was given; nothing is composed afterwards. Only the lists
of sources and related documents come from the answers before the turn.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from windowpane.api.turns import Band, ContextDebug
from windowpane.context.messages import AssistantMessage, Message, Step
from windowpane.context.request import OfferedTool, PartKind, Request, RequestMessage
from windowpane.request.messages import messages_now

CHARACTERS_PER_TOKEN = 4
RECENT_SOURCES = 5
RELATED_DOCUMENTS = 10


def context_debug(
    request: Request, before: Sequence[Message], *, steps: Sequence[Step] = (), topic: str | None = None
) -> ContextDebug:
    """Return what a turn's model was told of the conversation.

    `before` are the messages before the turn, oldest first; `steps` are those of the turn that its last call was given.
    With `topic`, it is said whether the model could know it: from anything that it was given.
    """
    messages = messages_now(request, steps)
    text = conversation_context(messages)
    history = {message.name for message in request.messages if message.part == "history"}
    latest_first = [message for message in before if isinstance(message, AssistantMessage)][::-1]
    sources = (source.title for answer in latest_first for source in answer.sources)
    related = (title for answer in latest_first for title in answer.related)
    known = topic is None or any(topic.casefold() in said.casefold() for said in _everything(messages, request.tools))
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
        warnings=tuple(_warnings(request.context.message_count, text, None if known else topic)),
    )


def conversation_context(messages: Sequence[RequestMessage]) -> str:
    """Return the conversation of a call as it was given to the model, in its order, system messages aside.

    The summary stands first. Each exchange follows with the results of its tools and the sources of its answer, then
    what was brought in for the question, each kind as a block of its own, then the question and what its turn did.
    """
    summary: list[str] = []
    blocks: list[list[str]] = []
    before: PartKind | None = None
    for message in messages:
        if message.role == "system":
            continue
        if message.part == "summary":
            summary.append(_unframed(message.content))
        elif message.part in _HEADINGS:
            heading = [] if before == message.part else [f"=== {_HEADINGS[message.part]} ==="]
            blocks.append([*heading, _unframed(message.content)])
        elif message.part == "sources" and blocks:
            blocks[-1].append(_unframed(message.content))
        elif message.role == "user" or not blocks:
            blocks.append([f"{message.role.upper()}: {message.content}"])
        elif message.content:
            blocks[-1].append(f"{message.role.upper()}: {message.content}")
        before = message.part
    apart = "\n\n" if blocks and blocks[0][0].startswith("===") else "\n"
    recent = f"=== RECENT MESSAGES ==={apart}" + "\n\n".join(map("\n".join, blocks))
    return "\n\n".join((*summary, recent))


_HEADINGS: Mapping[PartKind, str] = {
    "recall": "RECALLED MESSAGES",
    "resume": "RESUMED WORK",
    "fetched": "FETCHED CONTEXT",
    "selected": "SELECTED FOR THE MESSAGE",
}


def _everything(messages: Iterable[RequestMessage], tools: Iterable[OfferedTool]) -> Iterator[str]:
    for message in messages:
        yield message.content
        yield from (f"{call.offered_name} {call.arguments}" for call in message.tool_calls)
    for tool in tools:
        yield f"{tool.offered_name} {tool.description} {json.dumps(tool.parameters, ensure_ascii=False)}"


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


def _warnings(message_count: int, text: str, unknown: str | None) -> Iterable[str]:
    if message_count == 0:
        yield "No conversation history!"
    if unknown:
        yield f"Previous topic not in context: {unknown}"
    if _band(len(text)) == "very large":
        yield f"The context grew very large ({len(text):,} characters)."
