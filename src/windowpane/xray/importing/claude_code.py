"""Read the session logs of Claude Code, below `~/.claude/projects`.

A line is a message of the conversation and names the line before it, so a log is a tree. An answer is one line for each
of its blocks. Newer versions also keep what each request was made of: system prompt, tools, settings, and the hashes
of its messages, whose texts stand in lines of their own or are those of the conversation. Older logs tell neither
system prompt nor tools, and a request is put together from the lines that lead to its answer.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, cast

from windowpane.calls.answer import usage_in
from windowpane.calls.documents import as_map, as_maps, as_text
from windowpane.context.calls import FoldedReply
from windowpane.xray.importing.told import ToldCall, ToldSession, folded, time_of

Line = Mapping[str, Any]
Message = Mapping[str, Any]

SYNTHETIC = "<synthetic>"
"""The model of a line that the program wrote itself."""


def is_claude_code(line: Line) -> bool:
    """Tell whether a line is one of these logs."""
    return isinstance(line.get("sessionId"), str) and isinstance(line.get("type"), str) and "payload" not in line


def read_claude_code(lines: Iterable[Line]) -> list[ToldSession]:
    """Return the conversations of a log: the main one, and those of subagents."""
    logs: dict[tuple[str, str], _Log] = {}
    roots: dict[str, str] = {}
    for line in lines:
        thread = _thread(line, roots)
        key = (as_text(line.get("sessionId")), thread)
        logs.setdefault(key, _Log()).take(line)
    found: list[ToldSession] = []
    for (conversation, thread), log in logs.items():
        calls = sorted(log.calls(), key=lambda call: call.at)
        if calls:
            told = ToldSession(
                source="claude-code",
                program="claude-code",
                version=log.version,
                conversation=conversation,
                thread=thread,
                calls=calls,
                tells_failures=bool(log.requests),
            )
            found.append(told)
    return found


def _thread(line: Line, roots: dict[str, str]) -> str:
    """Return what tells a subagent's lines apart: its id, or, in older logs, the line that its own began with."""
    if line.get("agentId"):
        return as_text(line["agentId"])
    if line.get("isSidechain") is not True:
        return ""
    own = as_text(line.get("uuid"))
    root = roots.get(as_text(line.get("parentUuid")), own)
    roots[own] = root
    return root


@dataclass(slots=True)
class _Answer:
    """The lines of one answer."""

    lines: list[Line]

    @property
    def message(self) -> Message:
        return as_map(self.lines[-1].get("message"))

    @property
    def blocks(self) -> list[Mapping[str, Any]]:
        return [block for line in self.lines for block in as_maps(as_map(line.get("message")).get("content"))]


@dataclass(slots=True)
class _Log:
    """The lines of one conversation."""

    version: str = ""
    nodes: dict[str, Line] = field(default_factory=dict[str, Line])
    answers: dict[str, _Answer] = field(default_factory=dict[str, _Answer])
    answer_of: dict[str, str] = field(default_factory=dict[str, str])
    results: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict[str, tuple[str, Mapping[str, Any]]])
    shapes: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    blobs: dict[str, Message] = field(default_factory=dict[str, Message])
    requests: dict[str, Line] = field(default_factory=dict[str, Line])
    messages_of: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    said_at: dict[str, "_Said | None"] = field(default_factory=dict[str, "_Said | None"])

    def take(self, line: Line) -> None:
        self.version = as_text(line.get("version")) or self.version
        match line.get("type"):
            case "api-request-shape":
                self.shapes[as_text(line.get("shapeHash"))] = as_map(line.get("shape"))
            case "api-request-blob":
                self.blobs[as_text(line.get("hash"))] = as_map(line.get("message"))
            case "api-request":
                self._take_request(line)
            case "user" | "assistant" | "attachment" if isinstance(line.get("uuid"), str):
                self._take_node(line)
            case _:
                pass

    def calls(self) -> Iterator[ToldCall]:
        self._learn_hashes()
        for key, answer in self.answers.items():
            if (call := self._call(key, answer)) is not None:
                yield call
        asked = list(self.requests)
        for name in asked[:-1]:
            # The answer to the last one may still come.
            if name not in self.answers and (at := time_of(self.requests[name].get("timestamp"))) is not None:
                yield self._unanswered(name, at)

    def _take_request(self, line: Line) -> None:
        name = as_text(line.get("id"))
        before = self.messages_of.get(as_text(line.get("base")), ())
        keep = line.get("keep")
        kept = before[:keep] if isinstance(keep, int) and keep > 0 else ()
        own = tuple(as_text(each) for each in _listed(line.get("tail")))
        self.requests[name] = line
        self.messages_of[name] = (*kept, *own)

    def _take_node(self, line: Line) -> None:
        uuid = as_text(line["uuid"])
        if uuid in self.nodes:
            return
        self.nodes[uuid] = line
        message = as_map(line.get("message"))
        if line["type"] == "assistant":
            own = f"{as_text(line.get('requestId'))} {as_text(message.get('id')) or uuid}"
            key = as_text(line.get("requestRef")) or own
            self.answer_of[uuid] = key
            self.answers.setdefault(key, _Answer([])).lines.append(line)
        for block in as_maps(message.get("content")):
            if block.get("type") == "tool_result":
                self.results[as_text(block.get("tool_use_id"))] = (uuid, block)

    def _learn_hashes(self) -> None:
        """Find the messages that requests name by hash and that stand in the conversation alone."""
        if not self.requests:
            return
        run: list[Mapping[str, Any]] = []
        for line in self.nodes.values():
            if line["type"] == "assistant":
                run = []
            elif line["type"] == "user":
                blocks = _blocks(as_map(line.get("message")).get("content"))
                run = [*run, *blocks]
                for content in (blocks, run):
                    self._learn({"role": "user", "content": content})
        for answer in self.answers.values():
            self._learn({"role": "assistant", "content": answer.blocks})

    def _learn(self, message: Message) -> None:
        written = json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.blobs.setdefault(hashlib.sha256(written.encode("utf-8", "replace")).hexdigest(), message)

    def _call(self, key: str, answer: _Answer) -> ToldCall | None:
        first, last = answer.lines[0], answer.lines[-1]
        ended_at = time_of(last.get("timestamp"))
        message = answer.message
        failed = last.get("isApiErrorMessage") is True
        if ended_at is None or (as_text(message.get("model")) in ("", SYNTHETIC) and not failed):
            return None
        request = self.requests.get(key)
        at = time_of((request or self.nodes.get(as_text(first.get("parentUuid")), first)).get("timestamp")) or ended_at
        said = {**message, "type": "message", "content": answer.blocks}
        body = self._body(key, first, as_text(message.get("model")))
        reply = FoldedReply(error=_words(answer.blocks)) if failed else folded("anthropic", said)
        return ToldCall(
            id=key,
            protocol="anthropic",
            model=f"anthropic:{as_text(body.get('model')) or 'unknown'}",
            body=body,
            reply=reply,
            usage=None if failed else usage_in([{"type": "message", "usage": message.get("usage")}]),
            at=min(at, ended_at),
            ended_at=ended_at,
            outcome="error" if failed else "complete",
            reason=reply.error if failed else "",
        )

    def _unanswered(self, name: str, at: datetime) -> ToldCall:
        body = self._told_body(name) or self._params(name)
        return ToldCall(
            id=name,
            protocol="anthropic",
            model=f"anthropic:{as_text(body.get('model')) or 'unknown'}",
            body=body,
            reply=FoldedReply(),
            at=at,
            ended_at=at,
            outcome="cut",
            reason="the log has no answer to it",
        )

    def _body(self, key: str, first: Line, model: str) -> dict[str, Any]:
        told = self._told_body(key)
        if told is not None:
            return told
        return {"model": "" if model == SYNTHETIC else model, **self._params(key), "messages": self._led_to(first)}

    def _told_body(self, name: str) -> dict[str, Any] | None:
        """Return a request as the log tells it; None when it does not tell all of its messages."""
        messages = [self.blobs.get(each) for each in self.messages_of.get(name, ())]
        if not messages or None in messages:
            return None
        body: dict[str, Any] = {**self._params(name), "messages": messages}
        return _with_marks(body, as_maps(self.requests[name].get("cacheControl")))

    def _params(self, name: str) -> dict[str, Any]:
        request = self.requests.get(name, {})
        params = {key: value for key, value in as_map(request.get("params")).items() if key != "betas"}
        shape = self.shapes.get(as_text(request.get("shapeHash")), {})
        return {**params, **{key: shape[key] for key in ("system", "tools") if shape.get(key)}}

    def _led_to(self, line: Line) -> list[Message]:
        """Return the messages of the lines that lead to an answer."""
        path: list[str] = []
        seen = {as_text(line.get("uuid"))}
        while (above := as_text(line.get("parentUuid"))) in self.nodes and above not in seen:
            seen.add(above)
            line = self.nodes[above]
            path.append(above)
        said: _Said | None = None
        for uuid in reversed(path):
            if uuid not in self.said_at:
                self.said_at[uuid] = _said(said, self.nodes[uuid])
            said = self.said_at[uuid]
        return self._with_all_results(said.messages() if said is not None else [], seen)

    def _with_all_results(self, messages: list[Message], path: set[str]) -> list[Message]:
        """Add the results of calls made at the same time: each hangs on the line of its own call."""
        for place, (asked, then) in enumerate(pairwise(messages), 1):
            calls = (as_text(block.get("id")) for block in asked["content"] if block.get("type") == "tool_use")
            found = (self.results[call] for call in calls if call in self.results)
            beside = [block for uuid, block in found if uuid not in path]
            if beside:
                messages[place] = {**then, "content": [*beside, *then["content"]]}
        return messages


@dataclass(frozen=True, slots=True)
class _Said:
    """What was said until a line: its message, and what came before that. Lines that follow share it."""

    before: "_Said | None"
    message: Message

    def messages(self) -> list[Message]:
        said: _Said | None = self
        found: list[Message] = []
        while said is not None:
            found.append(said.message)
            said = said.before
        return found[::-1]


def _said(before: _Said | None, line: Line) -> _Said | None:
    """Return what was said until this line, which goes on with the message before it where the speaker is the same."""
    role, blocks = _spoken(line)
    if not blocks:
        return before
    if before is not None and before.message["role"] == role:
        return _Said(before.before, {"role": role, "content": [*before.message["content"], *blocks]})
    return _Said(before, {"role": role, "content": list(blocks)})


def _spoken(line: Line) -> tuple[str, Sequence[Mapping[str, Any]]]:
    if line["type"] == "attachment":
        role = as_text(line.get("renderedRole")) or "user"
        return role, [{"type": "text", "text": as_text(part.get("content"))} for part in as_maps(line.get("rendered"))]
    message = as_map(line.get("message"))
    return as_text(message.get("role")) or as_text(line["type"]), _blocks(message.get("content"))


def _blocks(content: object) -> Sequence[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else as_maps(content)


def _words(blocks: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(as_text(block.get("text")) for block in blocks)[:500] or "the provider answered with an error"


def _with_marks(body: dict[str, Any], marks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a request with its marks for the cache, which the log keeps apart. Nothing that is shared is changed."""
    for mark in marks:
        steps = _listed(mark.get("path"))
        marked = _marked(body, steps, mark.get("value")) if steps else body
        body = cast("dict[str, Any]", marked)
    return body


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _marked(value: object, path: Sequence[object], mark: object) -> object:
    fields, listed = as_map(value), _listed(value)
    if not path:
        return {**fields, "cache_control": mark} if fields else value
    step, rest = path[0], path[1:]
    if isinstance(step, str) and step in fields:
        return {**fields, step: _marked(fields[step], rest, mark)}
    if isinstance(step, int) and 0 <= step < len(listed):
        return [*listed[:step], _marked(listed[step], rest, mark), *listed[step + 1 :]]
    return value
