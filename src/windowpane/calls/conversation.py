"""Read a request's body as a conversation: who said what, which tools are offered, what tools returned.

A message has a fingerprint by what it says, not by how it is written: marks for the cache move from call to call. So
two requests of one conversation are known by the messages that they begin with.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from windowpane.calls.documents import as_map, as_maps, as_text
from windowpane.calls.parts.sections import sections_of
from windowpane.calls.protocol import WireProtocol
from windowpane.context.messages import ToolResult
from windowpane.context.text import valid_unicode

Speaker = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ToldMessage:
    """One message of a request. `texts` are its blocks of text, `results` what tools returned."""

    speaker: Speaker
    texts: tuple[str, ...] = ()
    results: tuple[ToolResult, ...] = ()
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class SentConversation:
    """What a request says. `shape` is a hash of its system prompt and its tools, `tools` are their names.

    `previous` is the provider's name of the answer that this goes on from, where the provider keeps the conversation.
    """

    model: str
    messages: tuple[ToldMessage, ...]
    tools: tuple[str, ...]
    shape: str
    max_tokens: int | None = None
    previous: str = ""

    @property
    def said(self) -> tuple[str, ...]:
        """Return the fingerprints of what users, models and tools said, in order."""
        return tuple(message.fingerprint for message in self.messages if message.speaker != "system")

    @property
    def tail(self) -> tuple[ToldMessage, ...]:
        """Return what came after the model's last message: what this request asks."""
        since = takewhile(lambda message: message.speaker != "assistant", reversed(self.messages))
        return tuple(message for message in since if message.speaker == "user")[::-1]

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Return what tools returned since the model spoke last."""
        return tuple(result for message in self.tail for result in message.results)

    @property
    def question(self) -> str:
        """Return what the user wrote last; notes that the program put beside it are left out where there is more."""
        for messages in (self.tail, tuple(m for m in self.messages if m.speaker == "user" and not m.results)[-1:]):
            texts = [text for message in messages for text in message.texts if text.strip()]
            own = [own for text in texts if (own := _without_notes(text))]
            if texts:
                return "\n\n".join(own or texts)
        return ""


def _without_notes(text: str) -> str:
    """Return what the user wrote of a text, without what the program put there."""
    sections = sections_of(text, "user")
    ends = (*(section.start for section in sections[1:]), len(text))
    own = (text[part.start : end] for part, end in zip(sections, ends, strict=True) if part.kind == "message")
    return "".join(own).strip()


def read_conversation(protocol: WireProtocol, body: Mapping[str, Any], model: str = "") -> SentConversation:
    """Return a request's body as a conversation. What is not understood is left out."""
    return ConversationReader().read(protocol, body, model)


class ConversationReader:
    """Reads the requests of one conversation, one after the other.

    What one repeats of the one before is not read again. Bodies that were read must not be changed.
    """

    def __init__(self) -> None:
        self._protocol: WireProtocol | None = None
        self._before: list[tuple[Mapping[str, Any], ToldMessage | None]] = []

    def read(self, protocol: WireProtocol, body: Mapping[str, Any], model: str = "") -> SentConversation:
        """Return a request's body as a conversation. What is not understood is left out."""
        tools = tuple(_tool_names(body.get("tools")))
        system = json.dumps([body.get(name) for name in _SYSTEM], sort_keys=True, default=str)
        limit = body.get("max_tokens", body.get("max_output_tokens"))
        return SentConversation(
            model=valid_unicode(as_text(body.get("model")) or model),
            messages=self._messages(protocol, body),
            tools=tools,
            shape=_hash(_without_marks(system), *tools),
            max_tokens=limit if isinstance(limit, int) else None,
            previous=as_text(body.get("previous_response_id")),
        )

    def _messages(self, protocol: WireProtocol, body: Mapping[str, Any]) -> tuple[ToldMessage, ...]:
        items_of, draft_of = _READERS[protocol]
        items = items_of(body)
        before = self._before if protocol == self._protocol else []
        pairs = zip(items, before, strict=False)
        same = next((at for at, (item, (known, _)) in enumerate(pairs) if item != known), min(len(items), len(before)))
        new = [(item, draft.message() if (draft := draft_of(item)) else None) for item in items[same:]]
        self._protocol, self._before = protocol, [*before[:same], *new]
        return tuple(message for _, message in self._before if message is not None)


_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_MARKS = re.compile(r'"cache_control": \{[^{}]*\}(, )?|x-anthropic-billing-header[^"]*')


def _without_marks(text: str) -> str:
    """Return a system prompt without what changes from call to call: marks for the cache, a line for billing."""
    return _MARKS.sub("", text)


@dataclass(slots=True)
class _Draft:
    speaker: Speaker
    texts: list[str] = field(default_factory=list[str])
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    others: list[str] = field(default_factory=list[str])

    def message(self) -> ToldMessage:
        results = tuple(self.results)
        told = (f"{result.call_id}\0{result.content}" for result in results)
        fingerprint = _hash(self.speaker, *self.texts, *told, *self.others)
        return ToldMessage(self.speaker, tuple(map(valid_unicode, self.texts)), results, fingerprint)

    def result(self, call_id: object, content: object, *, failed: object = False) -> None:
        text = content if isinstance(content, str) else _joined(content)
        self.results.append(ToolResult(valid_unicode(as_text(call_id)), valid_unicode(text), is_error=failed is True))


Items = Sequence[Mapping[str, Any]]


def _messages(body: Mapping[str, Any]) -> Items:
    return as_maps(body.get("messages"))


def _input(body: Mapping[str, Any]) -> Items:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else as_maps(given)


def _contents(body: Mapping[str, Any]) -> Items:
    contents = body.get("contents")
    return as_maps(contents) or as_maps([contents])


def _prompt_and_messages(body: Mapping[str, Any]) -> Items:
    prompt = [{"role": "user", "content": body.get("prompt")}] if "prompt" in body else []
    return [*prompt, *_messages(body)]


def _anthropic(message: Mapping[str, Any]) -> _Draft:
    draft = _Draft(_speaker(message.get("role")))
    for block in _blocks(message.get("content")):
        kind = block.get("type")
        if kind == "text":
            draft.texts.append(as_text(block.get("text")))
        elif kind == "tool_result":
            draft.result(block.get("tool_use_id"), block.get("content"), failed=block.get("is_error"))
        elif kind not in ("thinking", "redacted_thinking"):
            draft.others.append(_written(block))
    return draft


def _openai(message: Mapping[str, Any]) -> _Draft:
    draft = _Draft(_speaker(message.get("role")))
    if message.get("role") in ("tool", "function"):
        draft.result(message.get("tool_call_id") or message.get("name"), message.get("content"))
    else:
        _add_blocks(draft, message.get("content"))
    draft.others.extend(_written(call) for call in as_maps(message.get("tool_calls")))
    return draft


def _responses(item: Mapping[str, Any]) -> _Draft | None:
    kind = as_text(item.get("type")) or "message"
    if kind == "message":
        draft = _Draft(_speaker(item.get("role")))
        _add_blocks(draft, item.get("content"))
        return draft
    if kind.endswith("_output"):
        draft = _Draft("user")
        draft.result(item.get("call_id"), item.get("output"))
        return draft
    return None if kind == "reasoning" else _Draft("assistant", others=[_written(item)])


def _google(message: Mapping[str, Any]) -> _Draft:
    draft = _Draft("assistant" if message.get("role") == "model" else "user")
    for part in as_maps(message.get("parts")):
        if response := as_map(part.get("functionResponse")):
            draft.result(response.get("id") or response.get("name"), response.get("response"))
        elif isinstance(part.get("text"), str) and part.get("thought") is not True:
            draft.texts.append(part["text"])
        elif "text" not in part:
            draft.others.append(_written(part))
    return draft


def _ollama(message: Mapping[str, Any]) -> _Draft:
    draft = _Draft(_speaker(message.get("role")))
    if message.get("role") == "tool":
        draft.result(message.get("tool_call_id") or message.get("tool_name"), message.get("content"))
    else:
        draft.texts.append(as_text(message.get("content")))
    draft.others.extend(_written(call) for call in as_maps(message.get("tool_calls")))
    return draft


_READERS: dict[
    WireProtocol, tuple[Callable[[Mapping[str, Any]], Items], Callable[[Mapping[str, Any]], _Draft | None]]
] = {
    "anthropic": (_messages, _anthropic),
    "openai": (_messages, _openai),
    "openai-responses": (_input, _responses),
    "google": (_contents, _google),
    "ollama": (_prompt_and_messages, _ollama),
}
"""For each protocol, where a body has its messages, and how one of them is read."""


def _add_blocks(draft: _Draft, content: object) -> None:
    for block in _blocks(content):
        if isinstance(block.get("text"), str):
            draft.texts.append(block["text"])
        else:
            draft.others.append(_written(block))


def _speaker(role: object) -> Speaker:
    if role in ("system", "developer"):
        return "system"
    return "assistant" if role in ("assistant", "model") else "user"


def _tool_names(tools: object) -> Iterator[str]:
    for tool in as_maps(tools):
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        for each in as_maps(declared) if declared else [as_map(tool.get("function")) or tool]:
            yield valid_unicode(as_text(each.get("name")) or as_text(each.get("type")))


def _written(block: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in block.items() if name not in ("cache_control", "id", "status")}
    return json.dumps(kept, sort_keys=True, default=str)


def _joined(content: object) -> str:
    texts = [as_text(block.get("text")) for block in _blocks(content) if isinstance(block.get("text"), str)]
    return "\n".join(texts) if texts else json.dumps(content, ensure_ascii=False, default=str)


def _blocks(content: object) -> Sequence[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else as_maps(content)


def _hash(*texts: str) -> str:
    return hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
