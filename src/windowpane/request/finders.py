"""Answer the finders: search the candidates of the session, and add what is found to the request of the turn.

The candidates are gathered again for each call. So an item that is `manual`, disabled, forbidden or removed from the
session is never found, also when it became so in the middle of the turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from windowpane.agents.base import Agent
from windowpane.context.items import Item, ItemRef, ItemType, Reference, Tool, item_hash
from windowpane.context.messages import NewFile, UserMessage
from windowpane.context.request import CallSettings, ContextItem, Found, OfferedTool, Part, Request
from windowpane.context.session import SessionState, named_links
from windowpane.errors import ToolError
from windowpane.request.assemble import offered_tool
from windowpane.request.gather import gather
from windowpane.request.selector import Selects
from windowpane.request.settings import search_settings
from windowpane.text.tokens import count, cut_to, family_for, tool_tokens, tools_tokens
from windowpane.tools.base import Toolbox
from windowpane.tools.finder_tools import FIND_REFERENCES, FIND_TOOLS, MOST_FOUND, READ_RESOURCE
from windowpane.tools.names import name_map

PAGE_TOKENS = 2000
"""How much of a reference is read at once."""

DEADLINE_S = 5.0
"""How long a search waits for vectors: a model can wait longer than a user who has just sent a message."""

ROOM_SHARE = 0.5
"""How much of the room that is left the descriptions of found tools may take; their results need the rest."""

_PAGE_CHARACTERS = PAGE_TOKENS * 20
_SHORT = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class FinderAnswer:
    """What a finder's call gave. `request` is the turn's with what was found in it; None: it stays as it is."""

    text: str
    is_error: bool = False
    files: tuple[NewFile, ...] = ()
    request: Request | None = None
    items: Mapping[ItemRef, Item] = field(default_factory=dict[ItemRef, Item])


@dataclass(frozen=True, slots=True)
class _Match:
    item: Item
    score: float
    passage: str


class Finders:
    """Answers the finders in the turns of one agent."""

    def __init__(self, selector: Selects, agent: Agent, toolbox: Toolbox) -> None:
        self._selector = selector
        self._agent = agent
        self._toolbox = toolbox

    async def answer(
        self,
        state: SessionState,
        request: Request,
        finder: str,
        arguments: Mapping[str, Any],
        *,
        step: int,
        room_tokens: int,
    ) -> FinderAnswer:
        """Return the answer to a call of the turn's step `step`. `room_tokens` is what the window has left."""
        if finder == READ_RESOURCE.name:
            return await self._read_resource(state, arguments)
        if finder not in (FIND_TOOLS.name, FIND_REFERENCES.name):
            return self._read(state, request, arguments, step=step)
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return FinderAnswer(text="Give a query: what it is for, in a few words.", is_error=True)
        kind: ItemType = "tool" if finder == FIND_TOOLS.name else "reference"
        matches, degraded = await self._search(state, request, query, kind)
        request = _noted(request, degraded)
        if kind == "reference":
            return FinderAnswer(text=_listed_references(matches, query), request=request if degraded else None)
        room = int(room_tokens * ROOM_SHARE)
        return _with_tools(request, matches, Found(step=step, finder=finder, query=query), room)

    def with_reader(self, request: Request, named: Found, room_tokens: int) -> Request | None:
        """Return the request with the tool that reads resources, which a result has `named`.

        None: it is there already, there is no room for it, or the agent wants no finders.
        """
        if not self._agent.settings.finders or any(tool.ref == READ_RESOURCE.ref for tool in request.tools):
            return None
        names = name_map([*(tool.ref for tool in request.tools), READ_RESOURCE.ref]).names
        offer = offered_tool(READ_RESOURCE, names[READ_RESOURCE.ref])
        tokens = tool_tokens(offer, family_for(request.context.settings))
        if tokens > room_tokens:
            return None
        reason = f"built in: {named.finder} named {named.query} in step {named.step}"
        item = replace(_found_tool(READ_RESOURCE, offer, named, tokens), include_mode="always", reason=reason)
        return _with_items(request, [item], [offer])

    async def _read_resource(self, state: SessionState, arguments: Mapping[str, Any]) -> FinderAnswer:
        uri = arguments.get("uri")
        server = named_links(state).get(uri) if isinstance(uri, str) else None
        if server is None or not isinstance(uri, str):
            return FinderAnswer(text="Only a resource that the result of a tool named can be read.", is_error=True)
        try:
            output = await self._toolbox.read(server, uri)
        except ToolError as error:
            return FinderAnswer(text=str(error), is_error=True)
        return FinderAnswer(text=output.content, is_error=output.is_error, files=output.files)

    async def _search(
        self, state: SessionState, request: Request, query: str, kind: ItemType
    ) -> tuple[list[_Match], tuple[str, ...]]:
        candidates = {item.ref: item for item in self._candidates(state, kind)}
        settings = {**search_settings(self._agent, state), "deadline_s": DEADLINE_S}
        selection = await self._selector.select(query, _asked(request), tuple(candidates.values()), settings)
        measured = [(chosen.item.ref, chosen.evidence) for chosen in selection.chosen]
        measured += [(left.ref, left.evidence) for left in selection.left_out if left.evidence is not None]
        # Ties stand in the order of the selection, which knows which of them is nearer.
        measured.sort(key=lambda each: (-each[1].score, each[1].rank or 0, each[0].sort_key))
        matches = [
            _Match(candidates[ref], evidence.score, evidence.passage.text if evidence.passage else "")
            for ref, evidence in measured
            if evidence.score > 0
        ]
        return matches[:MOST_FOUND], selection.degraded

    def _candidates(self, state: SessionState, kind: ItemType) -> list[Item]:
        gathered = gather(self._agent, self._toolbox.servers(), state)
        return [item for item in gathered.candidates if item.ref.type == kind]

    def _read(self, state: SessionState, request: Request, arguments: Mapping[str, Any], *, step: int) -> FinderAnswer:
        name, number = arguments.get("name"), arguments.get("page", 1)
        if not isinstance(name, str) or not isinstance(number, int):
            return FinderAnswer(text="Give the name of a reference, and the number of a page.", is_error=True)
        readable = {item.name: item for item in self._candidates(state, "reference") if isinstance(item, Reference)}
        reference = readable.get(name.removeprefix("reference:"))
        if reference is None:
            return FinderAnswer(text=f"No reference named {name!r} can be read. Use find_references.", is_error=True)
        held = request.context.item(reference.ref)
        if held is not None and held.status == "used" and held.found is None:
            return FinderAnswer(text=f"You were given all of {name!r} already: it stands before the user's message.")
        texts = pages(reference.text)
        if not 1 <= number <= len(texts):
            return FinderAnswer(text=f"{name!r} has {len(texts)} pages; there is no page {number}.", is_error=True)
        text = _page(reference, texts, number, [each for each in reference.related if each in readable])
        if held is not None and held.found is None:
            # The selection took it and sent a part: the record says so already.
            return FinderAnswer(text=text)
        item = _read_item(reference, held, step, number, len(texts), count(texts[number - 1]))
        return FinderAnswer(text=text, request=_with_items(request, [item]), items={reference.ref: reference})


def pages(text: str) -> tuple[str, ...]:
    """Return a text in pages of at most `PAGE_TOKENS`, which end with a paragraph or a line where they can."""
    found: list[str] = []
    while text:
        page = cut_to(text[:_PAGE_CHARACTERS], PAGE_TOKENS)
        if len(page) < len(text):
            ends = (page.rfind(mark) + len(mark) for mark in ("\n\n", "\n", " ") if page.rfind(mark) > len(page) // 2)
            page = page[: next(ends, len(page))]
        found.append(page)
        text = text[len(page) :]
    return tuple(found) or ("",)


def _asked(request: Request) -> tuple[UserMessage, ...]:
    """Return the message that the turn answers: a model that asks for a tool is working on it."""
    messages = [message.content for message in request.messages if message.part == "message"]
    return tuple(UserMessage(content=text, seq=0, at=request.context.timestamp) for text in messages[-1:])


def _with_tools(request: Request, matches: Sequence[_Match], asked: Found, room_tokens: int) -> FinderAnswer:
    """Return the request with the found tools that there is room for, best first."""
    held = {item.ref: item for item in request.context.items}
    names = name_map([*(tool.ref for tool in request.tools), *(match.item.ref for match in matches)]).names
    family = family_for(request.context.settings)
    listed: list[str] = []
    new: list[ContextItem] = []
    offers: list[OfferedTool] = []
    items: dict[ItemRef, Item] = {}
    for match in matches:
        tool, before = match.item, held.get(match.item.ref)
        if not isinstance(tool, Tool) or (before is not None and not before.sent):
            continue
        if before is not None:
            listed.append(_tool_line(before.offered_name or tool.name, tool))
            continue
        offer = offered_tool(tool, names[tool.ref])
        # Keep going: a smaller tool further down may still fit.
        tokens = tool_tokens(offer, family)
        fits = tokens <= room_tokens
        if fits:
            room_tokens -= tokens
            offers.append(offer)
            listed.append(_tool_line(offer.offered_name, tool))
        items[tool.ref] = tool
        new.append(_found_tool(tool, offer, replace(asked, score=match.score), tokens if fits else None))
    after = _with_items(request, new, offers) if new else None
    if not listed:
        return FinderAnswer(text=f"No tool was found for {asked.query!r}. Try other words.", request=after, items=items)
    text = "\n".join((f"Found {len(listed)}. You can call them now:", *listed))
    return FinderAnswer(text=text, request=after, items=items)


def _found_tool(tool: Tool, offer: OfferedTool, found: Found, tokens: int | None) -> ContextItem:
    fits = tokens is not None
    reason = f"asked for by the model in step {found.step}: {found.finder}({found.query!r})"
    return ContextItem(
        type="tool",
        name=tool.name,
        server=tool.server,
        include_mode="agent",
        status="used" if fits else "over_budget",
        reason=reason if fits else f"{reason}; there was no room for it",
        tokens=tokens or 0,
        hash=item_hash(tool),
        version=tool.version,
        offered_name=offer.offered_name if fits else None,
        found=found,
    )


def _read_item(
    reference: Reference, before: ContextItem | None, step: int, page: int, page_count: int, tokens: int
) -> ContextItem:
    asked = before.found if before is not None and before.found is not None else None
    read = tuple(sorted({*(asked.pages if asked else ()), page}))
    first = asked or Found(step=step, finder="read_reference", query=reference.name)
    which = "" if page_count == 1 else f", {'page' if len(read) == 1 else 'pages'} {', '.join(map(str, read))}"
    again = before is not None and asked is not None and page in asked.pages
    return ContextItem(
        type="reference",
        name=reference.name,
        include_mode="agent",
        status="used" if len(read) == page_count else "truncated",
        reason=f"asked for by the model in step {first.step}: {first.finder}({first.query!r}){which}",
        tokens=(before.tokens if before else 0) + (0 if again else tokens),
        hash=item_hash(reference),
        version=reference.version,
        priority=reference.priority,
        found=replace(first, pages=read),
    )


def _with_items(request: Request, items: Sequence[ContextItem], offers: Sequence[OfferedTool] = ()) -> Request:
    """Return the request with these items, each instead of an older record of it, and these tools."""
    context = request.context
    refs = {item.ref for item in items}
    tools = (*request.tools, *offers)
    family = family_for(context.settings)
    all_tokens = tools_tokens(tools, family)
    more_tokens = all_tokens - tools_tokens(request.tools, family)
    parts, settings = context.parts, context.settings
    if offers:
        part = Part(kind="tools", name=f"{len(tools)} offered", tokens=all_tokens)
        settings = _with_allowed(settings, offers)
        parts = tuple(part if each.kind == "tools" else each for each in parts)
    return replace(
        request,
        tools=tools,
        context=replace(
            context,
            items=(*(item for item in context.items if item.ref not in refs), *items),
            parts=parts,
            settings=settings,
            budget=replace(context.budget, used_tokens=context.budget.used_tokens + more_tokens),
        ),
    )


def _with_allowed(settings: CallSettings, offers: Sequence[OfferedTool]) -> CallSettings:
    """Return the settings of the calls that follow: what the model asked for it may call."""
    if settings.allowed_tools is None:
        return settings
    return replace(settings, allowed_tools=(*settings.allowed_tools, *(offer.offered_name for offer in offers)))


def _noted(request: Request, degraded: Sequence[str]) -> Request:
    context = request.context
    notes = tuple(dict.fromkeys((*context.degraded, *degraded)))
    return replace(request, context=replace(context, degraded=notes)) if notes != context.degraded else request


def _tool_line(name: str, tool: Tool) -> str:
    return f"- {name} (server {tool.server}): {_shortened(tool.description)}"


def _listed_references(matches: Sequence[_Match], query: str) -> str:
    if not matches:
        return f"No reference was found for {query!r}. Try other words."
    lines = [_reference_line(match) for match in matches]
    return "\n".join((f"Found {len(lines)}. Read them with read_reference:", *lines))


def _reference_line(match: _Match) -> str:
    reference = match.item
    if not isinstance(reference, Reference):
        raise TypeError(f"{reference.ref} was found among references but is not one")
    title = f" ({reference.title})" if reference.title not in ("", reference.name) else ""
    about = reference.description or match.passage
    return f"- {reference.name}{title}: {_shortened(about)}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[:_SHORT].rpartition(' ')[0] or line[:_SHORT]}…"


def _page(reference: Reference, texts: Sequence[str], number: int, related: Sequence[str]) -> str:
    head = f"Reference {reference.name}" + (f", page {number} of {len(texts)}" if len(texts) > 1 else "")
    tail = f"\n\nRelated references: {', '.join(related)}" if related and number == len(texts) else ""
    return f"{head}:\n\n{texts[number - 1]}{tail}"
