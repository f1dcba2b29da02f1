"""Find what helped with similar questions before, and offer it.

Of the latest turns that an owner had with an agent, those are similar whose message is near the present one in meaning,
or shares its telling words. What their answers made use of, and what was added by hand after them, is offered as it was
used together, with the turns that it comes from. Nothing is added by this: the user adds what is wanted.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Protocol

import anyio.to_thread

from windowpane.api.suggestions import Combination, SharedItem, Similar, SimilarTurn
from windowpane.context.events import TurnStarted
from windowpane.context.ids import SessionId
from windowpane.context.items import Item, ItemRef
from windowpane.context.session import SessionState
from windowpane.errors import InvalidInputError, NotFoundError
from windowpane.insight.analytics.store import AnalyticsStore, Remembered
from windowpane.search.words import words
from windowpane.sessions.agent_items import AgentItems
from windowpane.sessions.lifecycle import SessionLifecycle
from windowpane.stores.base import Store

LOOKED_AT = 300
"""How many of the latest turns are looked at."""

MEASURED = 64
"""How many of them are compared by meaning: those that share the most words, and the latest."""

NEAR = 0.6
"""From here on, two messages ask for about the same. A cosine, or the share of the telling words that both have."""

SHOWN_TURNS = 5
SHOWN_COMBINATIONS = 5


class Sharing(Protocol):
    """What looking for similar questions needs of an engine."""

    @property
    def store(self) -> Store:
        """Where logs are."""
        ...

    @property
    def sessions(self) -> SessionLifecycle:
        """Sessions as they are now."""
        ...

    @property
    def agent_items(self) -> AgentItems:
        """What agents make available, and which of it a message needs."""
        ...


async def similar(engine: Sharing, analytics: AnalyticsStore, session_id: SessionId, message: str) -> Similar:
    """Return what helped with questions like this one, of the session's owner and with its agent.

    Raises:
        SessionNotFoundError: no such session.
        InvalidInputError: the message is empty.
    """
    if not message.strip():
        raise InvalidInputError("the message is empty")
    state = await engine.sessions.get(session_id)
    lessons = await anyio.to_thread.run_sync(partial(analytics.lessons, state.owner, state.agent, limit=LOOKED_AT))
    asked = await _asked(engine.store, [entry for entry in lessons if entry.lesson.used or entry.lesson.added])
    near = await _similarities(engine, message, [text for _, text in asked])
    found = [(entry, text, value) for (entry, text), value in zip(asked, near, strict=True) if value >= NEAR]
    known = {item.ref: item for item in await engine.agent_items.of(state.agent)}
    return Similar(message=message, looked_at=len(asked), combinations=_combined(found, known, state))


async def _asked(store: Store, entries: Sequence[Remembered]) -> list[tuple[Remembered, str]]:
    """Return what was asked in each turn; those that were deleted or erased since are passed over."""
    found: list[tuple[Remembered, str]] = []
    for entry in entries:
        try:
            events = await store.read(entry.session_id, after=entry.lesson.seq - 1, limit=1)
        except NotFoundError:
            continue
        if events and isinstance(events[0].event, TurnStarted) and events[0].event.turn == entry.lesson.turn:
            found.append((entry, events[0].event.message))
    return found


async def _similarities(engine: Sharing, message: str, texts: Sequence[str]) -> list[float]:
    by_words = word_similarities(message, texts)
    most = sorted(range(len(texts)), key=lambda place: -by_words[place])[: MEASURED // 2]
    chosen = list(dict.fromkeys((*most, *range(len(texts)))))[:MEASURED]
    measured = await engine.agent_items.nearness(message, [texts[place] for place in chosen])
    near = dict(zip(chosen, measured, strict=True))
    return [round(max(by_words[place], near.get(place) or 0.0), 4) for place in range(len(texts))]


def word_similarities(message: str, texts: Sequence[str]) -> list[float]:
    """Return what share of the telling words of a message and each text, the rare counting more, both have."""
    wanted = frozenset(words(message))
    bags = [frozenset(words(text)) for text in texts]
    times = Counter(word for bag in bags for word in bag)

    def weight(bag: frozenset[str]) -> float:
        return sum(math.log(1 + (len(bags) + 1) / (times[word] + 0.5)) for word in sorted(bag))

    return [weight(wanted & bag) / (weight(wanted | bag) or 1.0) for bag in bags]


def _combined(
    found: Sequence[tuple[Remembered, str, float]], known: Mapping[ItemRef, Item], state: SessionState
) -> tuple[Combination, ...]:
    groups: dict[frozenset[ItemRef], list[tuple[Remembered, str, float]]] = {}
    for entry, text, value in found:
        refs = frozenset(ref for ref in (*entry.lesson.used, *entry.lesson.added) if ref in known)
        if refs:
            groups.setdefault(refs, []).append((entry, text, value))
    combinations = [_combination(refs, turns, known, state) for refs, turns in groups.items()]
    # What a session has anyway is no offer.
    offered = [one for one in combinations if not all(item.held for item in one.items)]
    offered.sort(key=lambda one: (-one.similarity, -one.times, [str(item.ref) for item in one.items]))
    return tuple(offered[:SHOWN_COMBINATIONS])


def _combination(
    refs: frozenset[ItemRef],
    turns: Sequence[tuple[Remembered, str, float]],
    known: Mapping[ItemRef, Item],
    state: SessionState,
) -> Combination:
    nearest = sorted(turns, key=lambda turn: -turn[2])
    added = {ref for entry, _, _ in turns for ref in entry.lesson.added}
    return Combination(
        items=tuple(
            SharedItem(ref=ref, description=known[ref].description, held=state.holds(ref), added=ref in added)
            for ref in sorted(refs, key=lambda ref: ref.sort_key)
        ),
        turns=tuple(
            SimilarTurn(
                session_id=entry.session_id,
                turn=entry.lesson.turn,
                day=date.fromordinal(entry.lesson.day),
                message=text,
                similarity=value,
            )
            for entry, text, value in nearest[:SHOWN_TURNS]
        ),
        times=len(turns),
        similarity=nearest[0][2],
    )
