"""Search the web for the message of a research turn, before its request is built: once, however often that is tried.

A preview does not search: a draft would go out to a search engine before its writer decided to send it, and every
look at it would cost a search. Its record says that the turn will search.
"""

from dataclasses import dataclass

from windowpane.context.events import Event, FetchedAdded
from windowpane.context.request import Request
from windowpane.context.session import Mode
from windowpane.errors import SearchEngineError
from windowpane.fetch.base import SearchEngine

RESULTS = 6
"""How many search results a research turn takes in."""

SKIPPED = "web search skipped: "
NOT_CONFIGURED = f"{SKIPPED}no search engine is configured; set WINDOWPANE_SEARCH_ENGINE"
NOT_IN_PREVIEW = "web search not run for a preview: the turn searches the web first and adds up to {} results"


@dataclass(frozen=True, slots=True)
class Research:
    """What a search adds to the session, notes on one that was not made or failed, and whether there can be any."""

    added: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()
    possible: bool = True


async def research(engine: SearchEngine | None, mode: Mode, message: str, *, search_web: bool) -> Research:
    """Search the web for a message, if its mode asks for that."""
    if mode != "research":
        return Research()
    if engine is None:
        return Research(notes=(NOT_CONFIGURED,), possible=False)
    if not search_web:
        return Research(notes=(NOT_IN_PREVIEW.format(RESULTS),))
    try:
        results = await engine.search(message, limit=RESULTS)
    except SearchEngineError as error:
        return Research(notes=(f"{SKIPPED}{error.engine}: {error.why}",))
    return Research(added=(FetchedAdded(items=results, actor="system"),) if results else ())


def searched_before(earlier: Request) -> Research:
    """Return what the search for a turn's earlier request is to its next one: what it found is in the session."""
    notes = tuple(note for note in earlier.context.degraded if note.startswith(SKIPPED))
    return Research(notes=notes, possible=NOT_CONFIGURED not in notes)
