"""Find in all sessions of one owner, and among the items of agents."""

from collections.abc import Sequence

from windowpane.api.sessions import FindView, FoundAgentItem, FoundInSession
from windowpane.context.items import Item
from windowpane.context.session import SessionState
from windowpane.errors import InvalidInputError, WindowpaneError
from windowpane.insight.finding.finder import FoundText
from windowpane.insight.finding.query import FindQuery, read_query
from windowpane.insight.finding.words import excerpt, has
from windowpane.local.bound import Bound
from windowpane.sessions.listing import SessionList

MOST_ITEMS = 10


def query_of(bound: Bound, line: str, agent: str | None) -> FindQuery:
    """Return what a line asks for.

    Raises:
        InvalidInputError: nothing.
    """
    query = read_query(line, owner=bound.owner, agent=agent)
    if not query.words and not query.has_conditions:
        raise InvalidInputError("type a word to look for, or a condition such as over:10k")
    return query


async def find(bound: Bound, line: str, agent: str | None, limit: int, cursor: str | None) -> FindView:
    """Return turns, messages, names and items that a line asks for."""
    query = query_of(bound, line, agent)
    page = await bound.finder.find(query, limit=limit, cursor=cursor)
    named = await bound.engine.sessions.list_these(list(dict.fromkeys(one.hit.session_id for one in page.found)))
    states = {state.id: state for state in named.sessions}
    items = await _items(bound, query) if cursor is None and query.words and not query.has_conditions else ()
    return FindView(
        words=query.words,
        understood=query.understood,
        found=tuple(
            _view(query, one, states[one.hit.session_id]) for one in page.found if one.hit.session_id in states
        ),
        items=tuple(items),
        cursor=page.cursor,
        complete=page.complete,
        names_only=bound.engine.store.encrypted,
    )


async def find_sessions(bound: Bound, line: str, agent: str | None, limit: int, cursor: str | None) -> SessionList:
    """Return the sessions in which something is found."""
    query = query_of(bound, line, agent)
    page = await bound.finder.find_sessions(query, limit=limit, cursor=cursor)
    return await bound.engine.sessions.list_these([one.hit.session_id for one in page.found], page.cursor)


def _view(query: FindQuery, found: FoundText, state: SessionState) -> FoundInSession:
    hit = found.hit
    return FoundInSession(
        session_id=hit.session_id,
        title=state.title,
        agent=state.agent,
        turn=hit.turn or None,
        seq=hit.seq or None,
        at=hit.at,
        tokens=hit.tokens or None,
        excerpt=excerpt(found.text, query.words) if hit.seq else "",
    )


async def _available(bound: Bound, agent: str, *, with_tools: bool) -> Sequence[Item]:
    """Return an agent's items. No tool server is started to look through every agent."""
    try:
        if with_tools:
            return await bound.engine.agent_items.of(agent)
        found = await bound.engine.agents.look(agent)
    except WindowpaneError:
        # It was removed meanwhile, or its folder cannot be read. What is wrong with it is said where agents are listed.
        return ()
    return (*found.rules, *found.references)


async def _items(bound: Bound, query: FindQuery) -> list[FoundAgentItem]:
    found: list[FoundAgentItem] = []
    for agent in bound.engine.agents.names():
        if query.wanted.agent not in (None, agent):
            continue
        for item in await _available(bound, agent, with_tools=query.wanted.agent is not None):
            if has(f"{item.name}\n{item.description}", query.words):
                found.append(
                    FoundAgentItem(
                        agent=agent,
                        type=item.ref.type,
                        name=item.name,
                        server=item.ref.server,
                        include=item.include,
                        description=item.description,
                    )
                )
            if len(found) == MOST_ITEMS:
                return found
    return found
