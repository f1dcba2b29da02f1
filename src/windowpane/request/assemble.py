"""Put a request together: what fits, in the order of `prompt/order.py`, and the record of both.

Every item and part is in the record, sent or not, with the reason.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from windowpane.agents.base import Agent
from windowpane.context.carried import DroppedItem
from windowpane.context.identity_cache import cached_by_identity
from windowpane.context.ids import BlobHash, RequestId
from windowpane.context.items import Item, ItemRef, Tool, is_own
from windowpane.context.messages import AssistantMessage, Attachment, UserMessage
from windowpane.context.request import (
    Budget,
    CallSettings,
    OfferedTool,
    Part,
    Request,
    RequestContext,
    RequestMessage,
    Tier,
    counted_room,
)
from windowpane.context.session import SessionState
from windowpane.errors import ContextTooLargeError
from windowpane.request.decisions import (
    carried_key,
    item_decision,
    left_out,
    part_decisions,
    piece_key,
    placed_piece,
)
from windowpane.request.fit import Fitted, Piece, fit
from windowpane.request.gather import Gathered
from windowpane.request.prompt.order import (
    Content,
    PastMessage,
    RequestEntry,
    Said,
    StandingItem,
    fresh_messages,
    past_messages,
    stable_messages,
)
from windowpane.request.prompt.sections import Section
from windowpane.request.selector import Selection
from windowpane.request.stable.rebase import CarryPlan, dropped_item
from windowpane.text.attached import sent_files
from windowpane.text.blocks import Block
from windowpane.text.render import (
    CUT_MARK,
    boundary_code,
    boundary_note,
    render_item,
)
from windowpane.text.tokens import (
    MESSAGE_OVERHEAD_TOKENS,
    TOOLS_OVERHEAD_TOKENS,
    Family,
    count,
    counted_tokens,
    cut_to,
    family_for,
    message_tokens,
    tool_tokens,
    tools_tokens,
)
from windowpane.tools.finder_tools import FINDER_REFS
from windowpane.tools.names import offer

LATEST_MESSAGES = 5
"""How many of the last messages are kept before anything that was added by hand."""

FRAME_TOKENS = 160
"""Set aside for headings and the boundary lines around what was selected, so that adding them breaks no budget."""

REPLY_SHARE = 0.25
"""How much of the window is reserved for the reply at most, whatever `max_output_tokens` says."""

BOUNDARY_TOKENS = 40
"""What a block costs beyond its text: the message and its boundary lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrying:
    """How a request goes on with the last one: what stands of what was there, and what may be added later.

    `declared` are tools that the provider is told of before the model needs them.
    """

    plan: CarryPlan
    standing: tuple[StandingItem, ...] = ()
    declared: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """Everything a request is made of. `carrying` is None for one that begins from nothing."""

    request_id: RequestId
    turn: int
    now: datetime
    agent: Agent
    session: SessionState
    message: str
    file_texts: Mapping[BlobHash, str] = field(default_factory=dict[BlobHash, str])
    settings: CallSettings
    window_tokens: int
    window_source: str
    sections: tuple[Section, ...]
    gathered: Gathered
    selection: Selection
    history: tuple[UserMessage | AssistantMessage, ...] = ()
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    message_count: int = 0
    catalog: BlobHash | None = None
    token_factor: float = 1.0
    no_working_context: str = ""
    carrying: Carrying | None = None

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """Return the files of the message."""
        return self.session.open_turn.attachments if self.session.open_turn else ()

    @property
    def said(self) -> Said:
        """Return what the request answers."""
        return Said(self.message, self.attachments, self.settings, self.file_texts)


def assemble(given: Ingredients) -> Request:
    """Return the request.

    Raises:
        ContextTooLargeError: what must be sent does not fit the window.
    """
    entries = _entries(given)
    standing = given.carrying.standing if given.carrying else ()
    tools = _offered(entries, standing)
    past = past_messages(given.history, given.said, with_tools=bool(tools))
    code = _code(given, past, tools.values())
    history = [entry.with_enclosed(code) for entry in past]
    sections = _sections(given, code)
    reply_tokens = min(given.settings.max_output_tokens or 0, int(given.window_tokens * REPLY_SHARE))
    pieces = _pieces(given, entries, tools, history, sections)
    pieces_tokens = _room(given, reply_tokens, bool(tools))
    placed = _fitted(given, pieces, pieces_tokens, reply_tokens)
    fates = {fitted.piece.key: fitted for fitted in placed}
    # Mostly everything is sent whole: only what is not is looked at again.
    cut = {key: fitted for key, fitted in fates.items() if not fitted.whole}
    gone = {key for key, fitted in cut.items() if not fitted.kept}
    taken = [_settle(entry, cut) for entry in entries] if cut else entries
    stays = [each for each in standing if carried_key(each.carried.ref) not in gone]
    sent_tools = _sent_tools(given, taken, stays, tools)
    content = Content(
        code=code,
        turn=given.turn,
        message=given.message,
        files=sent_files(given.attachments, given.settings),
        sections=sections,
        taken=taken,
        history=[past for past in history if past.key not in gone] if gone else history,
        blocks=[_settled(block, cut) for block in given.blocks if block.key not in gone],
        standing=[each for each in stays if given.settings.additions or not isinstance(each.item, Tool)],
        added=_added(given, taken, tools),
    )
    messages = fresh_messages(content) if given.carrying is None else stable_messages(content)
    used_tokens = counted_tokens(messages, sent_tools, family_for(given.settings))
    context = RequestContext(
        id=given.request_id,
        turn=given.turn,
        timestamp=given.now,
        agent=given.agent.name,
        settings=_limited(given, used_tokens, reply_tokens),
        query=given.selection.query,
        items=tuple(item_decision(entry, tools.get(entry.ref), fates) for entry in taken),
        candidates=given.selection.left_out,
        absent=given.gathered.absent,
        parts=_parts(given, messages, sent_tools, history, cut),
        budget=_budget(given, reply_tokens, used_tokens, pieces_tokens),
        message_count=given.message_count,
        degraded=given.notes + given.gathered.degraded + given.selection.degraded,
        search=given.selection.search,
        pieces=tuple(map(placed_piece, placed)),
        catalog=given.catalog,
        finders=given.gathered.finders,
        carried=tuple(each.carried for each in stays),
        dropped=_dropped(given, cut),
    )
    return Request(messages=messages, tools=sent_tools, context=context, declared=_declared(given, sent_tools))


def _room(given: Ingredients, reply_tokens: int, with_tools: bool) -> int:
    """Return what all pieces may take together, by our count."""
    room = counted_room(given.window_tokens - reply_tokens, given.token_factor) - FRAME_TOKENS
    return room - (TOOLS_OVERHEAD_TOKENS[family_for(given.settings)] if with_tools else 0)


def _budget(given: Ingredients, reply_tokens: int, used_tokens: int, pieces_tokens: int) -> Budget:
    return Budget(
        window_tokens=given.window_tokens,
        reply_tokens=reply_tokens,
        used_tokens=used_tokens,
        window_source=given.window_source,
        pieces_tokens=pieces_tokens,
        token_factor=given.token_factor,
    )


def _offered(entries: Sequence[RequestEntry], standing: Sequence[StandingItem]) -> dict[ItemRef, OfferedTool]:
    """Return every tool that could be sent, as it is offered."""
    tools = {entry.ref: entry.item for entry in entries if isinstance(entry.item, Tool) and entry.sendable}
    tools |= {each.item.ref: each.item for each in standing if isinstance(each.item, Tool)}
    return {ref: offered_tool(tools[ref], name) for ref, name in offer(tools.values()).names.items()}


def _sent_tools(
    given: Ingredients,
    taken: Sequence[RequestEntry],
    standing: Sequence[StandingItem],
    tools: Mapping[ItemRef, OfferedTool],
) -> tuple[OfferedTool, ...]:
    """Return the tools that the model can call. In a stable request those that came later stand behind the others."""
    sent = [entry for entry in taken if entry.ref in tools and entry.sent and entry.since is None]
    if given.carrying is None:
        return tuple(tools[entry.ref] for entry in sent)
    held, new = ([tools[e.ref] for e in sent if (e.mode == "agent") == chosen] for chosen in (False, True))
    before = (tools[each.item.ref] for each in standing if each.item.ref in tools)
    return (*sorted(held, key=_by_name), *before, *sorted(new, key=_by_name))


def _by_name(tool: OfferedTool) -> str:
    return tool.offered_name


def _added(given: Ingredients, taken: Sequence[RequestEntry], tools: Mapping[ItemRef, OfferedTool]) -> tuple[str, ...]:
    """Return the names of the tools that a message of this request adds."""
    if given.settings.additions is None:
        return ()
    new = [entry.ref for entry in taken if entry.mode == "agent" and entry.sent and entry.since is None]
    return tuple(sorted(tools[ref].offered_name for ref in new if ref in tools))


def _declared(given: Ingredients, sent: Sequence[OfferedTool]) -> tuple[OfferedTool, ...]:
    """Return the tools that the provider is told of and the model is not."""
    if given.carrying is None or given.settings.additions != "by_reference":
        return ()
    there = {tool.ref for tool in sent}
    if not there - {tool.ref for tool in given.carrying.declared}:
        # A provider refuses a list of which the model sees nothing.
        return ()
    names = offer(given.carrying.declared).names
    declared = (offered_tool(tool, names[tool.ref]) for tool in given.carrying.declared if tool.ref not in there)
    return tuple(sorted((replace(tool, deferred=True) for tool in declared), key=_by_name))


def _dropped(given: Ingredients, cut: Mapping[str, Fitted]) -> tuple[DroppedItem, ...]:
    if given.carrying is None:
        return ()
    fates = ((each.carried, cut.get(carried_key(each.carried.ref))) for each in given.carrying.standing)
    gone = (dropped_item(item, fate.reason) for item, fate in fates if fate is not None and not fate.kept)
    return (*given.carrying.plan.dropped, *gone)


def _fitted(given: Ingredients, pieces: Sequence[Piece], room_tokens: int, reply_tokens: int) -> tuple[Fitted, ...]:
    try:
        return fit(pieces, room_tokens)
    except ContextTooLargeError as error:
        raise ContextTooLargeError(
            error.needed_tokens,
            error.room_tokens,
            error.largest,
            window=f"{given.window_tokens} tokens ({given.window_source})",
            reply_tokens=reply_tokens,
        ) from None


def _limited(given: Ingredients, used_tokens: int, reply_tokens: int) -> CallSettings:
    """Return the settings with a reply no longer than what the window has left: strict servers refuse more."""
    asked = given.settings.max_output_tokens
    if asked is None or asked <= reply_tokens:
        return given.settings
    left = given.window_tokens - int(used_tokens * given.token_factor)
    return replace(given.settings, max_output_tokens=max(reply_tokens, min(asked, left)))


def item_tokens(item: Item, offered_name: str = "", *, family: Family = "other") -> int:
    """Return what sending all of an item takes."""
    if isinstance(item, Tool):
        return tool_tokens(offered_tool(item, offered_name), family)
    return count(render_item(item)) + 2


def _entries(given: Ingredients) -> list[RequestEntry]:
    since = {each.carried.ref: each.carried.turn for each in given.carrying.standing} if given.carrying else {}
    session = [
        RequestEntry(
            ref=found.ref,
            item=found.item,
            mode=found.mode,
            status=found.status,
            reason=found.reason,
            text=_text_of(found.item),
        )
        for found in given.gathered.found
    ]
    selected = [
        RequestEntry(
            ref=chosen.item.ref,
            item=chosen.item,
            mode="agent",
            status="used",
            reason=chosen.reason,
            text=_text_of(chosen.item),
            evidence=chosen.evidence,
            since=since.get(chosen.item.ref),
        )
        for chosen in given.selection.chosen
        if not given.session.holds(chosen.item.ref)
    ]
    return session + selected


def _text_of(item: Item | None) -> str:
    if item is None or isinstance(item, Tool):
        return ""
    # What was said in a session is not kept apart from it.
    return render_item(item) if is_own(item) else _rendered(item)


_rendered = cached_by_identity(render_item)


def offered_tool(tool: Tool, name: str) -> OfferedTool:
    """Return a tool as it is offered under a name."""
    offers = _offers(tool)
    if name not in offers:
        # Sorted keys: the same tool is the same bytes every time, for prompt caches and for replay.
        parameters = json.loads(json.dumps(tool.parameters, sort_keys=True))
        offers[name] = OfferedTool(offered_name=name, ref=tool.ref, description=tool.description, parameters=parameters)
    return offers[name]


@cached_by_identity
def _offers(tool: Tool) -> dict[str, OfferedTool]:
    """Return the offers that were made of a tool, by the name that it was offered under."""
    return {}


def _code(given: Ingredients, history: Sequence[PastMessage], tools: Iterable[OfferedTool]) -> str:
    said = [part for entry in history for part in entry.rendered]
    past = (
        *(part.content for part in said),
        *(call.arguments for part in said for call in part.tool_calls),
        *(entry.sources for entry in history),
        *(text for entry in history for text in entry.attached),
    )
    others = (block.text for block in given.blocks)
    sections = (section.text for section in given.sections)
    texts = (given.message, *past, *sections, *others, *map(_schema, tools))
    return boundary_code(given.session.id, texts, given.gathered.numbers)


@cached_by_identity
def _schema(tool: OfferedTool) -> str:
    """Return what a tool's server says about it, as one text."""
    return f"{tool.description}\n{json.dumps(tool.parameters, default=str, ensure_ascii=False)}"


def _sections(given: Ingredients, code: str) -> tuple[Section, ...]:
    core, *rest = given.sections
    return (core, Section("core", "boundary", boundary_note(code)), *rest)


def _pieces(
    given: Ingredients,
    entries: Sequence[RequestEntry],
    tools: Mapping[ItemRef, OfferedTool],
    history: Sequence[PastMessage],
    sections: Sequence[Section],
) -> list[Piece]:
    pieces = [
        Piece(
            key=f"prompt {section.name}", tier="must", rank=(0,), tokens=count(section.text) + MESSAGE_OVERHEAD_TOKENS
        )
        for section in sections
    ]
    files_cost = sum(file.tokens for file in sent_files(given.attachments, given.settings))
    message_cost = count(given.message) + MESSAGE_OVERHEAD_TOKENS + files_cost
    pieces.append(Piece(key="the message", tier="must", rank=(1,), tokens=message_cost))
    family = family_for(given.settings)
    for entry in entries:
        if not entry.sendable or entry.since is not None:
            continue
        tier: Tier = "must" if entry.mode == "always" else "manual" if entry.mode == "manual" else "selected"
        if entry.ref in FINDER_REFS:
            tier = "finder"
        score = entry.evidence.score if entry.evidence else 0.0
        pieces.append(
            Piece(
                key=str(entry.ref),
                tier=tier,
                rank=(-score, entry.priority, entry.ref.name),
                tokens=tool_tokens(tools[entry.ref], family) if entry.ref in tools else count(entry.text) + 2,
                can_shorten=entry.ref.type == "reference" and tier != "must",
            )
        )
    pieces += [
        Piece(
            key=carried_key(each.carried.ref),
            tier="carried",
            rank=(-each.carried.used, -each.carried.turn, str(each.carried.ref)),
            tokens=tool_tokens(tools[each.item.ref], family) if each.item.ref in tools else each.carried.tokens,
        )
        for each in (given.carrying.standing if given.carrying else ())
    ]
    pieces += [
        Piece(
            key=block.key,
            tier=block.tier,
            rank=block.rank,
            tokens=count(block.text) + BOUNDARY_TOKENS,
            can_shorten=block.can_shorten,
        )
        for block in given.blocks
    ]
    newest_first = list(reversed(history))
    for index, past in enumerate(newest_first):
        tier = "latest" if index < LATEST_MESSAGES else "older"
        pieces.append(Piece(key=past.key, tier=tier, rank=(index,), tokens=sum(map(message_tokens, past.rendered))))
    return pieces


def _settle(entry: RequestEntry, cut: Mapping[str, Fitted]) -> RequestEntry:
    fate = cut.get(piece_key(entry)) if entry.sendable else None
    if fate is None:
        return entry
    if not fate.kept:
        return replace(entry, status="over_budget", reason=fate.reason, text="", since=None)
    text = cut_to(entry.text, fate.tokens - count(CUT_MARK) - 4) + CUT_MARK
    return replace(entry, status="truncated", reason=f"{entry.reason}; {fate.reason}", text=text)


def _settled(block: Block, cut: Mapping[str, Fitted]) -> Block:
    fate = cut.get(block.key)
    if fate is None:
        return block
    return replace(block, text=cut_to(block.text, fate.tokens - BOUNDARY_TOKENS - count(CUT_MARK) - 4) + CUT_MARK)


def _parts(
    given: Ingredients,
    messages: Sequence[RequestMessage],
    tools: Sequence[OfferedTool],
    history: Sequence[PastMessage],
    cut: Mapping[str, Fitted],
) -> tuple[Part, ...]:
    parts = part_decisions(messages, given.blocks, cut)
    if why := given.no_working_context:
        parts.append(Part(kind="core", name="working_context", tokens=0, status="left_out", reason=why))
    if tools:
        tokens = tools_tokens(tools, family_for(given.settings))
        parts.append(Part(kind="tools", name=f"{len(tools)} offered", tokens=tokens))
    return (*parts, *left_out(history, given.blocks, cut))
