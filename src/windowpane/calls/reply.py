"""Fold the bytes of an answer into what was said: text, thinking, tool calls, and how it ended.

Each protocol writes an answer as one document and as a stream of small ones. Both are folded by the same class: a
document that holds all of it is a stream of one.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from windowpane.calls.documents import as_map, as_maps, as_text, documents
from windowpane.calls.protocol import WireProtocol
from windowpane.context.calls import FoldedReply
from windowpane.context.items import CLIENT_SERVER, tool_ref
from windowpane.context.messages import ToolCall
from windowpane.context.text import valid_unicode

LONGEST_ERROR = 500
"""How much is kept of what an answer without success says."""


def fold_reply(protocol: WireProtocol, body: bytes) -> FoldedReply:
    """Return what an answer says. An answer that broke off gives what had arrived."""
    folding = _Folding()
    read = _READERS[protocol]
    for document in documents(body):
        read(folding, document)
        folding.note_error(document)
    return folding.reply()


class _Folding:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.calls: dict[str, dict[str, str]] = {}
        self.id = ""
        self.finish = ""
        self.model = ""
        self.error = ""

    def call(self, key: object, *, id_: object = "", name: object = "", arguments: object = "") -> None:
        """Add to the tool call with this key, which may be of any kind."""
        call = self.calls.setdefault(repr(key), {"id": "", "name": "", "arguments": ""})
        call["id"] = call["id"] or as_text(id_)
        call["name"] = call["name"] or as_text(name)
        call["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)

    def note_error(self, document: Mapping[str, Any]) -> None:
        error: object = document.get("error") or as_map(document.get("response")).get("error")
        if error:
            said = as_map(error).get("message") or error
            self.error = valid_unicode(as_text(said) or json.dumps(error))[:LONGEST_ERROR]

    def reply(self) -> FoldedReply:
        return FoldedReply(
            id=valid_unicode(self.id),
            text=valid_unicode("".join(self.text)),
            thinking=valid_unicode("".join(self.thinking)),
            tool_calls=tuple(
                ToolCall(
                    valid_unicode(call["id"] or unnamed_call_id(place)),
                    valid_unicode(call["name"]),
                    valid_unicode(call["arguments"]),
                    # The program that was recorded runs its tools itself.
                    tool_ref(CLIENT_SERVER, valid_unicode(call["name"])),
                )
                for place, call in enumerate(self.calls.values(), 1)
            ),
            finish_reason=valid_unicode(self.finish),
            model=valid_unicode(self.model),
            error=self.error,
        )


def unnamed_call_id(place: int) -> str:
    """Return the id of a call to which the provider gave none, by its place in the answer, from 1."""
    return f"call_{place}"


def _anthropic(folding: _Folding, document: Mapping[str, Any]) -> None:
    message = as_map(document.get("message")) if document.get("type") == "message_start" else document
    folding.model = as_text(message.get("model")) or folding.model
    for place, block in enumerate(as_maps(message.get("content"))):
        _anthropic_block(folding, place, block)
    if document.get("type") == "content_block_start":
        _anthropic_block(folding, document.get("index"), as_map(document.get("content_block")))
    delta = as_map(document.get("delta"))
    folding.text.append(as_text(delta.get("text")))
    folding.thinking.append(as_text(delta.get("thinking")))
    if "partial_json" in delta:
        folding.call(document.get("index"), arguments=as_text(delta["partial_json"]))
    folding.finish = as_text(delta.get("stop_reason")) or as_text(message.get("stop_reason")) or folding.finish


def _anthropic_block(folding: _Folding, place: object, block: Mapping[str, Any]) -> None:
    folding.text.append(as_text(block.get("text")))
    folding.thinking.append(as_text(block.get("thinking")))
    if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
        # In a stream the input follows in pieces, and stands here as an empty object.
        folding.call(place, id_=block.get("id"), name=block.get("name"), arguments=block.get("input") or "")


def _openai(folding: _Folding, document: Mapping[str, Any]) -> None:
    folding.model = as_text(document.get("model")) or folding.model
    for choice in as_maps(document.get("choices"))[:1]:
        said = as_map(choice.get("delta") or choice.get("message"))
        folding.text.append(as_text(said.get("content")) or as_text(said.get("refusal")))
        folding.thinking.append(as_text(said.get("reasoning_content")) or as_text(said.get("reasoning")))
        for place, call in enumerate(as_maps(said.get("tool_calls"))):
            function = as_map(call.get("function"))
            folding.call(
                call.get("index", place),
                id_=call.get("id"),
                name=function.get("name"),
                arguments=as_text(function.get("arguments")),
            )
        folding.finish = as_text(choice.get("finish_reason")) or folding.finish


def _responses(folding: _Folding, document: Mapping[str, Any]) -> None:
    kind = as_text(document.get("type"))
    whole = as_map(document.get("response")) if kind.startswith("response.") else document
    folding.id = as_text(whole.get("id")) or folding.id
    folding.model = as_text(whole.get("model")) or folding.model
    if kind == "response.output_text.delta" or kind == "response.refusal.delta":
        folding.text.append(as_text(document.get("delta")))
    elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
        folding.thinking.append(as_text(document.get("delta")))
    elif kind == "response.output_item.done":
        _responses_call(folding, as_map(document.get("item")))
    elif whole.get("status") in ("completed", "incomplete", "failed"):
        folding.finish = as_text(whole.get("status"))
        for item in as_maps(whole.get("output")):
            # A stream has told its texts before; one document has not.
            if kind.startswith("response."):
                _responses_call(folding, item)
            else:
                _responses_item(folding, item)


def _responses_item(folding: _Folding, item: Mapping[str, Any]) -> None:
    _responses_call(folding, item)
    if item.get("type") == "message":
        folding.text.extend(
            as_text(part.get("text")) or as_text(part.get("refusal")) for part in as_maps(item.get("content"))
        )
    elif item.get("type") == "reasoning":
        folding.thinking.extend(as_text(part.get("text")) for part in as_maps(item.get("summary")))


def _responses_call(folding: _Folding, item: Mapping[str, Any]) -> None:
    key = item.get("call_id") or item.get("id")
    if not as_text(item.get("type")).endswith("_call") or repr(key) in folding.calls:
        return
    arguments = item.get("arguments") or item.get("input") or item.get("action") or ""
    folding.call(key, id_=key, name=item.get("name") or item.get("type"), arguments=arguments)


def _google(folding: _Folding, document: Mapping[str, Any]) -> None:
    folding.model = as_text(document.get("modelVersion")) or folding.model
    for candidate in as_maps(document.get("candidates"))[:1]:
        for part in as_maps(as_map(candidate.get("content")).get("parts")):
            (folding.thinking if part.get("thought") is True else folding.text).append(as_text(part.get("text")))
            if call := as_map(part.get("functionCall")):
                key = call.get("id") or len(folding.calls)
                folding.call(key, id_=call.get("id"), name=call.get("name"), arguments=call.get("args") or {})
        folding.finish = as_text(candidate.get("finishReason")) or folding.finish


def _ollama(folding: _Folding, document: Mapping[str, Any]) -> None:
    folding.model = as_text(document.get("model")) or folding.model
    message = as_map(document.get("message"))
    folding.text.append(as_text(message.get("content")) or as_text(document.get("response")))
    folding.thinking.append(as_text(message.get("thinking")) or as_text(document.get("thinking")))
    for call in as_maps(message.get("tool_calls")):
        function = as_map(call.get("function"))
        folding.call(
            len(folding.calls), id_=call.get("id"), name=function.get("name"), arguments=function.get("arguments")
        )
    if document.get("done") is True:
        folding.finish = as_text(document.get("done_reason")) or "stop"


_READERS: dict[WireProtocol, Callable[[_Folding, Mapping[str, Any]], None]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "openai-responses": _responses,
    "google": _google,
    "ollama": _ollama,
}
