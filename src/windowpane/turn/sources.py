"""Name what an answer could draw on, and what is worth reading next.

Both are read off the request that the model was given: a document that was left out of it is no source.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from windowpane.context.events import TurnFinished
from windowpane.context.items import ItemRef, Reference, reference_ref
from windowpane.context.messages import Source, Step
from windowpane.context.request import Request
from windowpane.context.session import HeldFetch
from windowpane.text.blocks import fetched_name

FindUsed = Callable[[Mapping[ItemRef, str], str, Sequence[str]], Collection[ItemRef]]
"""Tells which of some texts an answer made use of, given what else the model was shown."""

IN_SESSION_SCORE = 1.0
"""The score of what was in the session anyway and needed no search."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """Ends a turn well: with the sources of its answer. `find_used` tells which texts the answer made use of."""

    turn: int
    references: Mapping[str, Reference]
    fetched: Sequence[HeldFetch]
    find_used: FindUsed

    def of(self, request: Request, steps: Sequence[Step]) -> TurnFinished:
        """Return the event that ends the turn, for the request of its last model call and all of its steps.

        A reference that is always sent is a source only when the answer made use of it.
        """
        always = {
            item.ref: self.references[item.name].text
            for item in request.context.items
            if item.type == "reference" and item.include_mode == "always" and item.name in self.references
        }
        unused = always.keys() - self.find_used(always, _written(steps), _around(request, steps)) if always else ()
        sources, related = sources_of(request, self.references, self.fetched, unused=unused)
        return TurnFinished(turn=self.turn, outcome="completed", sources=sources, related=related)


def _written(steps: Sequence[Step]) -> str:
    return "\n".join((*(step.text for step in steps), *(call.arguments for step in steps for call in step.tool_calls)))


def _around(request: Request, steps: Sequence[Step]) -> list[str]:
    """Return what the model was shown beside its items."""
    shown = [message.content for message in request.messages if message.part not in ("rules", "references", "sources")]
    return shown + [result.content for step in steps for result in step.results]


def sources_of(
    request: Request,
    references: Mapping[str, Reference],
    fetched: Sequence[HeldFetch] = (),
    *,
    unused: Collection[ItemRef] = (),
) -> tuple[tuple[Source, ...], tuple[str, ...]]:
    """Return the sources of a request, best first, and the titles of related documents that are not among them.

    `references` are the agent's, by name; `fetched` gives pages and search results their titles. `unused` are items of
    the request that are no sources of its answer.
    """
    items = [item for item in request.context.items if item.type == "reference" and item.ref not in unused]
    sent = [item for item in items if item.sent]
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
    titles = {fetched_name(held.item): held.item.title for held in fetched}
    for part in request.context.parts:
        if part.kind == "fetched" and part.status != "left_out":
            url = part.name.partition(" ")[2]
            yield Source(title=titles.get(part.name) or url, score=IN_SESSION_SCORE, url=url)
