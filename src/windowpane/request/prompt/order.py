"""The prompt order, and where each thing stands in it.

`fresh`: the system block as the builder puts it together, rules, references; summary, recent messages; recall,
reminder, fetched pages, files that were attached, what was selected for this message; the message. Nothing of an
earlier selection is there.

`stable`: what changes least comes first, because providers keep the beginning of prompts. The system block has no page
and no time in it. In the history everything stands where it entered: tools that were added and texts that were selected
stand before the message that they were for, and stay there until the next re-base, as do the words of attached files,
which follow them. Then come the volatile blocks (page,
time, recall, reminder, fetched pages), which are never kept, and the message, untouched.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from windowpane.context.carried import CarriedItem
from windowpane.context.identity_cache import Remembering, cached_in
from windowpane.context.ids import BlobHash
from windowpane.context.items import IncludeMode, Item, ItemRef, Reference, Rule
from windowpane.context.messages import AssistantMessage, Attachment, Message, SentFile, UserMessage
from windowpane.context.request import VOLATILE_PARTS, CallSettings, Evidence, ItemStatus, PartKind, RequestMessage
from windowpane.request.prompt.sections import Section
from windowpane.text.attached import attached_texts
from windowpane.text.blocks import Block
from windowpane.text.render import (
    additions_message,
    enclosed,
    render_message,
    render_references,
    render_rules,
    render_sources,
)

BEFORE_HISTORY = ("summary",)
AFTER_HISTORY = ("recall", "resume", "fetched")
ATTACHED = ("attached",)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEntry:
    """An item on its way into the request. `since` is the turn since which it stands in the prompt."""

    ref: ItemRef
    item: Item | None
    mode: IncludeMode
    status: ItemStatus
    reason: str
    text: str = ""
    evidence: Evidence | None = None
    since: int | None = None

    @property
    def sendable(self) -> bool:
        """Tell whether the item could be sent."""
        return self.item is not None and self.status == "used"

    @property
    def sent(self) -> bool:
        """Tell whether the item is sent."""
        return self.status in ("used", "truncated")

    @property
    def priority(self) -> int:
        """Return the item's priority; tools have none."""
        return self.item.priority if isinstance(self.item, Rule | Reference) else 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMessage(Remembering):
    """What the model gets of a past message, each part under the name of the message, `key`.

    `sources` are the lines that name an answer's documents, `attached` what the model reads of a message's files.
    """

    key: str
    turn: int | None
    is_answer: bool
    rendered: tuple[RequestMessage, ...]
    sources: str = ""
    attached: tuple[str, ...] = ()

    def with_enclosed(self, code: str) -> "PastMessage":
        """Return it with its files before it and the lines about its documents behind it, as messages of their own."""
        if not self.attached and not self.sources:
            return self
        known: tuple[str, PastMessage] | None = getattr(self, "_enclosed", None)
        if known is None or known[0] != code:
            before = [self._between(code, text, "attached") for text in self.attached]
            behind = [self._between(code, self.sources, "sources")] if self.sources else []
            known = code, replace(self, rendered=(*before, *self.rendered, *behind))
            object.__setattr__(self, "_enclosed", known)
        return known[1]

    def _between(self, code: str, text: str, part: PartKind) -> RequestMessage:
        return RequestMessage(role="user", content=enclosed(code, text), part=part, name=self.key)


@dataclass(frozen=True, slots=True)
class Said:
    """What a request answers, how its model is called, and the words of files."""

    message: str
    attachments: tuple[Attachment, ...]
    settings: CallSettings
    file_texts: Mapping[BlobHash, str]

    def is_in(self, message: UserMessage) -> bool:
        """Tell whether a past message says the same, word for word and file for file."""
        return message.content == self.message and message.attachments == self.attachments

    def attached(self, message: Message) -> tuple[str, ...]:
        """Return what the model reads of the files of a past message."""
        files = message.attachments if isinstance(message, UserMessage) else ()
        return tuple(each.text for each in attached_texts(files, self.settings, self.file_texts))


def past_messages(history: Sequence[Message], said: Said, *, with_tools: bool) -> list[PastMessage]:
    """Return the recent messages, which are sent whole, oldest first.

    A message that was sent before, failed, and is now sent again word for word is not asked twice.
    """
    answered = {message.turn for message in history if isinstance(message, AssistantMessage)}
    found: list[PastMessage] = []
    for message in history:
        if isinstance(message, UserMessage) and message.turn not in answered and said.is_in(message):
            continue
        past = _without_files(message) if isinstance(message, UserMessage | AssistantMessage) else None
        if not past or (not with_tools and any(part.tool_calls for part in past.rendered)):
            past = _past(message, with_tools, said)
        if past.rendered:
            found.append(past)
    return found


@cached_in("_past")
def _without_files(message: UserMessage | AssistantMessage) -> PastMessage | Literal[False]:
    """Return what every model with tools gets of a message; False for one with files, which not every model takes."""
    if isinstance(message, UserMessage):
        files = bool(message.attachments)
    else:
        files = any(result.attachments for step in message.model_reply.steps for result in step.results)
    return False if files else _past(message, with_tools=True)


def _past(message: Message, with_tools: bool, said: Said | None = None) -> PastMessage:
    key = f"message {message.seq}"
    return PastMessage(
        key=key,
        turn=message.turn,
        is_answer=isinstance(message, AssistantMessage),
        rendered=render_message(message, with_tools, said.settings if said else None, key),
        sources=render_sources(message),
        attached=said.attached(message) if said else (),
    )


@dataclass(frozen=True, slots=True)
class StandingItem:
    """An item that entered in an earlier turn and stands in the prompt. `text` is empty for a tool."""

    carried: CarriedItem
    item: Item
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Everything that has a place in the prompt. `added` are the names of tools that enter with this request."""

    code: str
    turn: int
    message: str
    files: tuple[SentFile, ...] = ()
    sections: Sequence[Section]
    taken: Sequence[RequestEntry]
    history: Sequence[PastMessage]
    blocks: Sequence[Block]
    standing: Sequence[StandingItem] = ()
    added: tuple[str, ...] = ()


def fresh_messages(content: Content) -> tuple[RequestMessage, ...]:
    """Return the messages of a request that begins from nothing."""
    messages = [*_system(content.sections), *_session_items(content), *_placed(content, BEFORE_HISTORY)]
    for past in content.history:
        messages.extend(past.rendered)
    messages += _placed(content, AFTER_HISTORY + ATTACHED)
    if selected := _texts_by_kind([entry for entry in content.taken if entry.mode == "agent"]):
        messages.append(
            RequestMessage(role="user", content=enclosed(content.code, "\n\n".join(selected)), part="selected")
        )
    messages.append(_message(content))
    return tuple(messages)


def stable_messages(content: Content) -> tuple[RequestMessage, ...]:
    """Return the messages of a request that goes on with the last one as far as it can."""
    system = [section for section in content.sections if section.kind not in VOLATILE_PARTS]
    volatile = [section for section in content.sections if section.kind in VOLATILE_PARTS]
    messages = [*_system(system), *_session_items(content), *_placed(content, BEFORE_HISTORY), *_history(content)]
    messages += _entered(content.added, content.turn)
    if entering := _texts_by_kind([e for e in content.taken if e.mode == "agent" and e.since is None]):
        messages.append(selected_message(content.code, content.turn, entering))
    messages += _placed(content, ATTACHED)
    messages += [
        RequestMessage(role="user", content=enclosed(content.code, each.text), part=each.kind, name=each.name)
        for each in volatile
    ]
    messages += _placed(content, AFTER_HISTORY)
    messages.append(_message(content))
    return tuple(messages)


def _message(content: Content) -> RequestMessage:
    return RequestMessage(role="user", content=content.message, part="message", files=content.files)


def selected_message(code: str, turn: int, texts: Sequence[str]) -> RequestMessage:
    """Return the block of texts that were selected for the message of a turn. It reads the same in later turns."""
    body = "\n\n".join((f"Chosen for the user's message of turn {turn}, which follows.", *texts))
    return RequestMessage(role="user", content=enclosed(code, body), part="selected", name=f"turn {turn}")


def with_additions(
    rendered: Sequence[RequestMessage], added: Mapping[int, tuple[str, ...]], turn: int
) -> Iterator[RequestMessage]:
    """Yield the messages of a turn's steps, each step followed by the tools that the model had from then on."""
    step = 0
    for message in rendered:
        if message.role == "assistant":
            yield from _entered(added.get(step, ()), turn)
            step += 1
        yield message
    yield from _entered(added.get(step, ()), turn)


def _history(content: Content) -> Iterator[RequestMessage]:
    """Yield the history: what entered at a turn stands before what was said in it."""
    waiting = sorted({each.carried.place for each in content.standing})
    for past in content.history:
        turn = past.turn
        while waiting and turn is not None and waiting[0] <= turn:
            yield from _stood(content, waiting.pop(0))
        found = _found(content.standing, turn) if past.is_answer else {}
        yield from with_additions(past.rendered, found, turn or 0)
    # A message that failed and is sent again is not asked twice; what was chosen for it stays.
    for place in waiting:
        yield from _stood(content, place)


def _stood(content: Content, place: int) -> Iterator[RequestMessage]:
    here = [each for each in content.standing if each.carried.place == place]
    tools = [each.carried for each in here if each.carried.type == "tool" and (not place or not each.carried.step)]
    yield from _entered(tuple(sorted(tool.offered_name for tool in tools if tool.offered_name)), place)
    texts = [
        RequestEntry(ref=each.item.ref, item=each.item, mode="agent", status="used", reason="", text=each.text)
        for each in here
        if each.carried.type != "tool"
    ]
    if texts:
        yield selected_message(content.code, place, _texts_by_kind(texts))


def _found(standing: Sequence[StandingItem], turn: int | None) -> dict[int, tuple[str, ...]]:
    """Return the tools that the model asked for in a turn, by step."""
    found: dict[int, tuple[str, ...]] = {}
    for each in standing:
        name, step = each.carried.offered_name, each.carried.step
        if name and step and each.carried.place == turn:
            found[step] = (*found.get(step, ()), name)
    return found


def _entered(names: tuple[str, ...], turn: int) -> Iterator[RequestMessage]:
    if names:
        yield additions_message(names, turn)


def _system(sections: Sequence[Section]) -> list[RequestMessage]:
    return [
        RequestMessage(role="system", content=section.text, part=section.kind, name=section.name)
        for section in sections
    ]


def _session_items(content: Content) -> Iterator[RequestMessage]:
    held = [entry for entry in content.taken if entry.mode != "agent"]
    if rules := _texts(held, Rule):
        yield RequestMessage(role="system", content=render_rules(rules), part="rules")
    if references := _texts(held, Reference):
        yield RequestMessage(role="system", content=render_references(references), part="references")


def _placed(content: Content, kinds: Sequence[str]) -> list[RequestMessage]:
    chosen = [block for block in content.blocks if block.kind in kinds]
    return [
        RequestMessage(role="user", content=enclosed(content.code, block.text), part=block.kind, name=block.name)
        for block in sorted(chosen, key=lambda block: kinds.index(block.kind))
    ]


def _texts_by_kind(entries: Sequence[RequestEntry]) -> list[str]:
    rules, references = _texts(entries, Rule), _texts(entries, Reference)
    return [*([render_rules(rules)] if rules else []), *([render_references(references)] if references else [])]


def _texts(entries: Sequence[RequestEntry], kind: type[Rule] | type[Reference]) -> list[str]:
    chosen = [entry for entry in entries if entry.sent and isinstance(entry.item, kind)]
    return [entry.text for entry in sorted(chosen, key=lambda entry: (entry.priority, entry.ref.name))]
