"""Read an exchange: what was asked, by which program, and what was answered. Thinking alone, done in a thread."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from windowpane.calls.answer import read_answer_bytes
from windowpane.calls.conversation import SentConversation, read_conversation
from windowpane.calls.documents import as_map
from windowpane.calls.encodings import decoded
from windowpane.calls.protocol import CallKind
from windowpane.calls.reply import fold_reply
from windowpane.calls.transport import LEFT_OUT
from windowpane.context.calls import CallOutcome, CallPurpose, FoldedReply, WireHead
from windowpane.context.messages import Usage
from windowpane.json_codec import JsonCodec
from windowpane.text.redact import redacted, redacted_header
from windowpane.xray.marks import ClientMarks, marks_of
from windowpane.xray.tape import Headers, TapeHead

_HEAD = JsonCodec(WireHead)


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request as it was read. `body` is what it said; `encoding` is how that was compressed on the wire."""

    marks: ClientMarks
    conversation: SentConversation
    purpose: CallPurpose
    model: str
    body: bytes
    encoding: str
    head: str


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """An answer as it was read, and how it ended."""

    reply: FoldedReply
    usage: Usage | None
    output_unknown: bool
    outcome: CallOutcome
    reason: str


def read_request(head: TapeHead, body: bytes) -> ReadRequest:
    """Return what a request says. A body that cannot be read is kept, and says nothing."""
    headers = _by_name(head.headers)
    encoding = headers.get("content-encoding", "")
    plain = decoded(encoding, body) if encoding else body
    if plain is None:
        plain, encoding = body, ""
    document = _document(plain)
    conversation = read_conversation(head.kind.protocol, document, head.kind.model)
    marks = marks_of(headers, document)
    model = f"{_MODEL_PROVIDERS.get(head.provider, head.provider)}:{conversation.model}"
    purpose = _purpose(head.kind, marks, conversation)
    return ReadRequest(marks, conversation, purpose, model, plain, encoding, _written_head(head))


def read_answer(
    kind: CallKind, status: int | None, headers: Headers, body: bytes, outcome: CallOutcome, reason: str
) -> ReadAnswer:
    """Return what an answer says."""
    plain = decoded(_by_name(headers).get("content-encoding", ""), body)
    reply = fold_reply(kind.protocol, plain or b"")
    facts = read_answer_bytes(plain or b"")
    if plain is None:
        reason = reason or "the answer could not be read"
    elif not reply.error:
        outcome, reason = facts.outcome(outcome, reason)
    if status is not None and status >= 400:
        outcome, reason = "error", f"status {status}: {redacted(reply.error)}".removesuffix(": ")
    elif reply.error and outcome != "error":
        outcome, reason = "error", redacted(reply.error)
    output_unknown = outcome == "complete" and facts.usage is not None and not facts.output_told
    return ReadAnswer(reply, facts.usage, output_unknown and kind.purpose == "answer", outcome, reason)


_MODEL_PROVIDERS = {"chatgpt": "openai"}
"""Whose models they are, where the path's name is not that of the price list."""


def _purpose(kind: CallKind, marks: ClientMarks, conversation: SentConversation) -> CallPurpose:
    if kind.purpose != "answer":
        return kind.purpose
    if conversation.max_tokens == 1:
        # A probe: does the key work, is there quota.
        return "helper"
    beside = marks.is_agent and marks.conversation and not conversation.tools and not conversation.previous
    return "helper" if beside else "answer"


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        return as_map(from_json(body))
    except ValueError:
        return {}


def _written_head(head: TapeHead) -> str:
    headers = tuple(
        (name, redacted_header(name, value))
        for name, value in ((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
        if name not in LEFT_OUT
    )
    return _HEAD.adapter.dump_json(WireHead(method=head.method, url=redacted(head.url), headers=headers)).decode()


def _by_name(headers: Headers) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
