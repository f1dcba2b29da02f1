"""Name what an answer could draw on, and what is worth reading next.

Both are read off the request that the model was given: a document that was left out of it is no source.
"""

from collections.abc import Iterator, Mapping, Sequence

from windowpane.context.items import Reference, reference_ref
from windowpane.context.messages import Source
from windowpane.context.request import Request
from windowpane.context.session import HeldFetch

IN_SESSION_SCORE = 1.0
"""The score of what was in the session anyway and needed no search."""


def sources_of(
    request: Request, references: Mapping[str, Reference], fetched: Sequence[HeldFetch] = ()
) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """Return the sources of a request, best first, and the titles of related documents that are not among them.

    `references` are the agent's, by name; `fetched` gives pages and search results their titles.
    """
    sent = [item for item in request.context.items if item.type == "reference" and item.sent]
    documents = [
        Source(
            title=_title(references, item.name),
            score=item.evidence.score if item.evidence else IN_SESSION_SCORE,
            ref=reference_ref(item.name),
        )
        for item in sent
    ]
    sources = tuple(sorted((*documents, *_pages(request, fetched)), key=lambda source: -source.score))
    taken = {source.title for source in sources}
    related = (
        _title(references, name)
        for source in sources
        if source.ref is not None and source.ref.name in references
        for name in references[source.ref.name].related
    )
    return sources, tuple(dict.fromkeys(title for title in related if title not in taken))


def _title(references: Mapping[str, Reference], name: str) -> str:
    """Return a document's title; one that the agent does not have is called what others call it."""
    return references[name].title or name if name in references else name


def _pages(request: Request, fetched: Sequence[HeldFetch]) -> Iterator[Source]:
    titles = {f"{held.item.kind} {held.item.url}": held.item.title for held in fetched}
    for part in request.context.parts:
        if part.kind == "fetched" and part.status != "left_out":
            url = part.name.partition(" ")[2]
            yield Source(title=titles.get(part.name) or url, score=IN_SESSION_SCORE, url=url)
