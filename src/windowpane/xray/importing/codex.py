"""Read the session logs of Codex, below `~/.codex/sessions`.

A line is an item of the conversation in the form of OpenAI's responses, or a note about the session: its instructions,
the model of a turn, the tokens of an answer. Items that the model wrote, one after the other, are an answer; the items
before them are what was asked. The definitions of tools are not in the log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from windowpane.calls.documents import as_map, as_maps, as_text
from windowpane.context.calls import FoldedReply
from windowpane.context.messages import Usage
from windowpane.xray.importing.told import ToldCall, ToldSession, folded, number_of, time_of

Line = Mapping[str, Any]

KINDS = ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "token_usage_record", "world_state")
"""What a line of such a log can be."""

PRIVATE = ("internal_chat_message_metadata_passthrough",)
"""Notes of the program in an item, which are not part of what is sent."""


def is_codex(line: Line) -> bool:
    """Tell whether a line is one of these logs."""
    return line.get("type") in KINDS and isinstance(line.get("payload"), dict)


def read_codex(lines: Iterable[Line]) -> list[ToldSession]:
    """Return the conversation of a log, if there is a call in it."""
    log = _Log()
    for number, line in enumerate(lines, 1):
        log.take(number, line)
    log.end_answer()
    if not log.calls or not log.id:
        return []
    told = ToldSession(
        source="codex",
        program="codex",
        version=log.version,
        conversation=log.session,
        thread=log.id if log.id != log.session else "",
        calls=log.calls,
        tells_failures=False,
    )
    return [told]


@dataclass(slots=True)
class _Log:
    id: str = ""
    session: str = ""
    version: str = ""
    provider: str = "openai"
    model: str = ""
    instructions: str = ""
    items: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    answer: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    began: int = 0
    asked_at: datetime | None = None
    ended_at: datetime | None = None
    calls: list[ToldCall] = field(default_factory=list[ToldCall])

    def take(self, number: int, line: Line) -> None:
        payload = as_map(line.get("payload"))
        at = time_of(line.get("timestamp"))
        match line.get("type"):
            case "session_meta" if not self.id:
                self._take_meta(payload)
            case "turn_context":
                self.model = as_text(payload.get("model")) or self.model
                self.asked_at = at or self.asked_at
            case "response_item":
                self._take_item(number, payload, at)
            case "compacted":
                self._take_summary(payload)
            case "token_usage_record":
                self.end_answer()
                self._take_usage(as_map(payload.get("usage")))
            case "event_msg":
                self._take_event(number, payload, at)
            case _:
                pass

    def end_answer(self) -> None:
        """Note the call whose answer is whole."""
        at = self.ended_at
        if self.answer and at is not None:
            document = {"status": "completed", "model": self.model, "output": self.answer}
            self.calls.append(self._call(self.began, folded("openai-responses", document), at))
        self.items = [*self.items, *self.answer]
        self.answer = []

    def _take_meta(self, payload: Mapping[str, Any]) -> None:
        self.id = as_text(payload.get("id"))
        self.session = as_text(payload.get("session_id")) or self.id
        self.version = as_text(payload.get("cli_version"))
        told = as_text(as_map(payload.get("base_instructions")).get("text"))
        self.instructions = told or as_text(payload.get("instructions"))
        if as_text(payload.get("model_provider")) == "ollama":
            self.provider = "ollama"

    def _take_item(self, number: int, payload: Mapping[str, Any], at: datetime | None) -> None:
        item = {name: value for name, value in payload.items() if name not in PRIVATE}
        kind = as_text(item.get("type"))
        by_model = item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")
        if by_model:
            if not self.answer:
                self.began = number
            self.answer.append(item)
            self.ended_at = at or self.ended_at
            return
        self.end_answer()
        self.items = [*self.items, item]
        self.asked_at = at or self.asked_at

    def _take_summary(self, payload: Mapping[str, Any]) -> None:
        """Begin again with a summary, as the program does when its window is full."""
        self.end_answer()
        kept = as_maps(payload.get("replacement_history"))
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": payload.get("message")}]}
        self.items = list(kept) if kept else [said]

    def _take_usage(self, counts: Mapping[str, Any]) -> None:
        if self.calls and self.calls[-1].usage is None and self.calls[-1].outcome == "complete" and counts:
            usage = Usage(
                input_tokens=number_of(counts.get("input_tokens")),
                output_tokens=number_of(counts.get("output_tokens")),
                cache_read_tokens=number_of(counts.get("cached_input_tokens")),
                cache_write_tokens=number_of(counts.get("cache_write_input_tokens")),
            )
            self.calls[-1] = replace(self.calls[-1], usage=usage)

    def _take_event(self, number: int, payload: Mapping[str, Any], at: datetime | None) -> None:
        if payload.get("type") == "token_count":
            self.end_answer()
            self._take_usage(as_map(as_map(payload.get("info")).get("last_token_usage")))
        elif payload.get("type") == "error" and at is not None:
            self.end_answer()
            said = as_text(payload.get("message"))[:500] or "the provider answered with an error"
            self.calls.append(self._call(number, FoldedReply(error=said), at))

    def _call(self, number: int, reply: FoldedReply, at: datetime) -> ToldCall:
        body: dict[str, Any] = {"model": self.model, "instructions": self.instructions, "input": self.items}
        return ToldCall(
            id=f"{self.id}:{number}",
            protocol="openai-responses",
            model=f"{self.provider}:{self.model or 'unknown'}",
            body={name: value for name, value in body.items() if value},
            reply=reply,
            at=min(self.asked_at or at, at),
            ended_at=at,
            outcome="error" if reply.error else "complete",
            reason=reply.error,
        )
