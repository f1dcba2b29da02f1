"""Why an item was in a request or was not, and the smallest change that would have turned it round.

The reason is the one that was recorded. The change is found from the recorded scores, settings and sizes, by the
same functions that decide in a turn; so it is exact: made as stated it turns the decision round, and made one step
smaller it does not. A step is 0.0001 for a score or a share, 1 for `top_n` and for tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from windowpane.api.explanation import Change, Explanation, Fate, Need, RoomState
from windowpane.context.carried import CarriedItem
from windowpane.context.catalog import CatalogEntry, Standing
from windowpane.context.items import (
    DEFAULT_PRIORITY,
    Domain,
    IncludeMode,
    ItemRef,
    Tool,
)
from windowpane.context.request import Candidate, ContextItem, Evidence
from windowpane.errors import UnknownItemError
from windowpane.insight.changes import (
    by_agent,
    change_of,
    changed,
    lowered,
    not_asked_for,
    one_step_less,
    one_step_up,
    raised,
    removal,
    setting_need,
    tokens_need,
)
from windowpane.insight.past import PastTurn
from windowpane.insight.refit import (
    WantedItem,
    WindowRoom,
    fate_of,
    more_tokens,
    more_with_finders,
    pieces_with,
    with_finders,
)
from windowpane.insight.rescore import Scored, domain_of, scored, settings_of
from windowpane.request.assemble import item_tokens
from windowpane.request.fit import Piece
from windowpane.search.select import Decision, DomainSelection
from windowpane.search.settings import SearchSettings, SelectSettings
from windowpane.text.tokens import family_for
from windowpane.tools.finder_tools import FINDER_REFS
from windowpane.tools.names import offer

MOST_TOP_N = 1000
MOST_INCLUDE_SCORE = 1.01


def explain(past: PastTurn, ref: ItemRef) -> Explanation:
    """Return why an item was in a past turn's request or not.

    Raises:
        UnknownItemError: the agent had no such item then, or the turn's record is too old to know.
    """
    return _Explainer(past).explain(ref)


def explain_all(past: PastTurn) -> tuple[Explanation, ...]:
    """Return the explanations of every item that the agent had, in the order of their refs."""
    explainer = _Explainer(past)
    refs = {entry.ref for entry in past.catalog.entries} if past.catalog else set[ItemRef]()
    refs |= {item.ref for item in past.context.items} | {candidate.ref for candidate in past.context.candidates}
    return tuple(explainer.explain(ref) for ref in sorted(refs, key=lambda ref: ref.sort_key))


class _Explainer:
    """One turn's record, read once."""

    def __init__(self, past: PastTurn) -> None:
        self._past = past
        self._context = past.context
        self._room = WindowRoom.of(self._context)
        self._settings = settings_of(past.context)
        self._domains: Mapping[Domain, Scored] = scored(past.context)
        self._held = {item.ref: item for item in past.context.items}
        self._carried = {item.ref: item for item in past.context.carried}
        self._left_out = {candidate.ref: candidate for candidate in past.context.candidates}
        self._absent = {absent.ref: absent for absent in past.context.absent}
        self._entries = {entry.ref: entry for entry in past.catalog.entries} if past.catalog else {}
        self._pieces = {piece.key: piece for piece in past.context.pieces}
        self._wanted: dict[ItemRef, WantedItem | None] = {}
        self._by_ref: dict[Domain, dict[ItemRef, Decision]] = {}

    def explain(self, ref: ItemRef) -> Explanation:
        if ref in self._held:
            return self._explain_held(self._held[ref])
        if ref in self._carried:
            return self._explain_carried(self._carried[ref])
        if ref in self._left_out:
            return self._explain_left_out(self._left_out[ref])
        if ref in self._entries:
            return self._explain_uninvolved(self._entries[ref])
        raise UnknownItemError(str(ref))

    def _explain_held(self, item: ContextItem) -> Explanation:
        if item.found is not None:
            changes = removal(item) if item.ref in FINDER_REFS else not_asked_for()
        elif item.sent:
            changes = self._ways_out(item)
            if item.status == "truncated":
                changes += self._completions(item)
        elif item.status == "over_budget":
            changes = self._ways_into_room(item)
        else:
            changes = (by_agent(_REMEDIES.get(item.status, "make it available again")),)
        return self._explanation(
            item.ref,
            included=item.sent,
            fate=item.status,
            mode=item.include_mode,
            code=self._code_of(item),
            reason=item.reason,
            evidence=item.evidence,
            changes=changes,
        )

    def _explain_carried(self, item: CarriedItem) -> Explanation:
        """Explain an item that this message does not need, and that stands in the prompt from an earlier turn."""
        candidate = self._left_out.get(item.ref)
        never = Need(what="remove", text="never in this session")
        fresh = Need(what="agent", text="`cache: fresh` in agent.yaml")
        return self._explanation(
            item.ref,
            included=True,
            fate="carried",
            mode="agent",
            code="carried",
            reason=f"here since turn {item.turn}: {item.reason}",
            evidence=candidate.evidence if candidate else None,
            changes=[change_of(effect="leaves_out", needs=(need,)) for need in (never, fresh)],
        )

    def _explain_left_out(self, candidate: Candidate) -> Explanation:
        ways = self._ways_in(candidate.ref) if candidate.evidence is not None else ()
        return self._explanation(
            candidate.ref,
            included=False,
            fate="left_out",
            mode="agent",
            code=candidate.code,
            reason=candidate.reason,
            evidence=candidate.evidence,
            changes=(*ways, *self._by_hand(candidate.ref)),
        )

    def _explain_uninvolved(self, entry: CatalogEntry) -> Explanation:
        if entry.standing == "ready":
            absent = self._absent.get(entry.ref)
            return self._explanation(
                entry.ref,
                included=False,
                fate="not_in_session",
                mode=entry.include,
                code=absent.code if absent else "not_in_session",
                reason=absent.reason if absent else _ABSENCES[entry.include],
                evidence=None,
                changes=self._by_hand(entry.ref),
            )
        return self._explanation(
            entry.ref,
            included=False,
            fate=entry.standing,
            mode=entry.include,
            code=entry.standing,
            reason=_STANDINGS[entry.standing],
            evidence=None,
            changes=(by_agent(_REMEDIES[entry.standing]),),
        )

    def _explanation(
        self,
        ref: ItemRef,
        *,
        included: bool,
        fate: Fate,
        mode: IncludeMode | None,
        code: str,
        reason: str,
        evidence: Evidence | None,
        changes: Sequence[Change],
    ) -> Explanation:
        domain = self._domains.get(domain_of(ref))
        want = self._want(ref)
        return Explanation(
            ref=ref,
            included=included,
            fate=fate,
            mode=mode,
            code=code,
            reason=reason,
            evidence=evidence,
            compared=len(domain.scores) if domain is not None and evidence is not None else 0,
            tokens=want.tokens if want else None,
            room=RoomState(pieces_tokens=self._context.budget.pieces_tokens, left_tokens=self._left.get(str(ref))),
            changes=tuple(sorted(changes, key=self._size)),
            degraded=self._context.degraded if evidence is not None else (),
        )

    @cached_property
    def _left(self) -> dict[str, int]:
        """Return what was left, in tokens, when each piece's turn came."""
        left = self._context.budget.pieces_tokens or 0
        found: dict[str, int] = {}
        for piece in self._context.pieces:
            found[piece.key] = left
            left -= piece.sent_tokens
        return found

    def _code_of(self, item: ContextItem) -> str:
        if item.status not in ("used", "truncated"):
            return item.status
        if item.found is not None and item.ref not in FINDER_REFS:
            return "asked_for"
        choice = self._choice(item.ref) if item.selected else None
        return choice.code if choice else item.include_mode

    # Selected, or not

    def _ways_in(self, ref: ItemRef) -> tuple[Change, ...]:
        """Return the settings under which the selection takes an item that it left out."""
        choice, domain = self._choice(ref), domain_of(ref)
        if choice is None or self._settings is None:
            return ()
        settings, small_talk = self._settings.of(domain), self._domains[domain].query.small_talk
        on = () if settings.enabled else (setting_need(domain, "enabled", True),)
        forced = (
            () if choice.score >= settings.include_score else (setting_need(domain, "include_score", choice.score),)
        )
        if small_talk:
            ways = [forced]
        else:
            relevant = tuple(raised(domain, settings, choice, self._best(domain)))
            # Where switching on is enough, nothing else is needed.
            ways = [forced, relevant] if forced and relevant else [()]
        if choice.rank > MOST_TOP_N:
            ways = ways[:1]
        return tuple(filter(None, (self._including(ref, (*on, *needs)) for needs in ways)))

    def _ways_out(self, item: ContextItem) -> tuple[Change, ...]:
        """Return what leaves an item out that was sent."""
        if item.include_mode != "agent":
            return removal(item)
        choice, domain = self._choice(item.ref), domain_of(item.ref)
        if choice is None or self._settings is None:
            return ()
        settings = self._settings.of(domain)
        unforced: tuple[Need, ...] = ()
        if choice.score >= settings.include_score:
            value = one_step_up(choice.score)
            if value > MOST_INCLUDE_SCORE:
                return ()
            unforced = (setting_need(domain, "include_score", value, least=True),)
        best, small_talk = self._best(domain), self._domains[domain].query.small_talk
        relevant = not small_talk and choice.score >= choice.cut_off and choice.score >= settings.floor
        if not relevant or choice.rank > settings.top_n:
            ways = [unforced]
        else:
            ways = [(*unforced, need) for need in lowered(domain, settings, choice, best)]
        changes = (change_of(effect="leaves_out", needs=needs) for needs in ways)
        return tuple(change for change in changes if self._takes_all(item.ref, change))

    def _takes_all(self, ref: ItemRef, change: Change) -> bool:
        """Tell whether an item is still sent when any part of a change is made one step smaller.

        It may not be: where room is short, a smaller change can already make it lose its place to another.
        """
        if not self._knows_room:
            return True
        for position, need in enumerate(change.needs):
            needs = (*change.needs[:position], one_step_less(need), *change.needs[position + 1 :])
            pieces = self._pieces_with(ref, change_of(change.effect, needs))
            fate = fate_of(pieces, self._room.tokens(pieces), str(ref))
            if fate is not None and not fate.kept:
                return False
        return True

    def _including(self, ref: ItemRef, needs: tuple[Need, ...]) -> Change | None:
        """Return a change of settings, with the tokens that it takes to fit as well; None when these are not known."""
        change = change_of(effect="includes", needs=needs)
        if not self._knows_room:
            return change
        unknown = self._context.finders is None and any(need.what == "enabled" for need in needs)
        count = more_with_finders if unknown else more_tokens
        more = count(self._pieces_with(ref, change), self._room, str(ref))
        return None if more is None else change_of(change.effect, (*needs, tokens_need(more))) if more else change

    def _pieces_with(self, ref: ItemRef, change: Change) -> tuple[Piece, ...]:
        """Return what competes for the room once the settings of the item's domain have changed."""
        pieces = pieces_with(self._context, self._selected_with(ref, change))
        domain = domain_of(ref)
        settings: dict[Domain, SelectSettings] = {each: self._of(each) for each in self._domains}
        settings[domain] = changed(self._of(domain), change)
        return with_finders(self._context, pieces, self._decided(settings))

    def _decided(self, settings: Mapping[Domain, SelectSettings]) -> Iterator[tuple[ItemRef, str]]:
        """Yield what is decided about each candidate."""
        for domain, each in settings.items():
            for choice in self._under(domain, each):
                yield choice.key, "selected" if choice.kept else choice.code

    def _selected_with(self, ref: ItemRef, change: Change) -> list[WantedItem]:
        """Return everything that is selected once the settings of the item's domain have changed."""
        domain = domain_of(ref)
        others = [item for item in self._context.items if item.evidence is not None and domain_of(item.ref) != domain]
        scores = [(item.ref, item.evidence.score) for item in others if item.evidence]
        scores += self._under(domain, changed(self._of(domain), change)).taken
        wants = [(self._want(key), score) for key, score in scores]
        return [replace(want, score=score) for want, score in wants if want is not None]

    def _choice(self, ref: ItemRef) -> Decision | None:
        if self._settings is None or domain_of(ref) not in self._domains:
            return None
        return self._recorded_choices(domain_of(ref)).get(ref)

    def _recorded_choices(self, domain: Domain) -> dict[ItemRef, Decision]:
        if domain not in self._by_ref:
            self._by_ref[domain] = {choice.key: choice for choice in self._under(domain, self._of(domain))}
        return self._by_ref[domain]

    def _of(self, domain: Domain) -> SelectSettings:
        return (self._settings or SearchSettings()).of(domain)

    def _under(self, domain: Domain, settings: SelectSettings) -> DomainSelection:
        return self._domains[domain].under(settings)

    def _best(self, domain: Domain) -> float:
        return float(self._domains[domain].scores.max())

    # Fitting, or not

    @property
    def _knows_room(self) -> bool:
        return self._context.budget.pieces_tokens is not None

    def _more(self, ref: ItemRef, selected: Sequence[WantedItem], by_hand: Sequence[WantedItem] = ()) -> int:
        pieces = pieces_with(self._context, selected, by_hand)
        if by_hand and self._settings is not None:
            decided = self._decided({each: self._of(each) for each in self._domains})
            pieces = with_finders(self._context, pieces, (each for each in decided if each[0] != ref))
        return more_tokens(pieces, self._room, str(ref))

    def _by_hand(self, ref: ItemRef) -> tuple[Change, ...]:
        """Return what includes an item that is not in the session: adding it, and room for it."""
        add = Need(what="add", text="add it by hand")
        want = self._want(ref)
        more = 0
        if want is not None and self._knows_room:
            more = self._more(ref, self._recorded_selection, (want,))
        return (change_of(effect="includes", needs=(add, tokens_need(more)) if more else (add,)),)

    def _ways_into_room(self, item: ContextItem) -> tuple[Change, ...]:
        if not self._knows_room:
            return ()
        more = self._more(item.ref, self._recorded_selection)
        room = change_of(effect="includes", needs=(tokens_need(more),))
        if item.include_mode != "agent":
            return (room,)
        # What is added by hand is more important than what was selected, and may need less.
        return (room, *(change for change in self._by_hand(item.ref) if change.tokens < more))

    def _completions(self, item: ContextItem) -> tuple[Change, ...]:
        """Return what sends all of an item that was shortened."""
        if not self._knows_room:
            return ()
        pieces = pieces_with(self._context, self._recorded_selection)
        more = more_tokens(pieces, self._room, str(item.ref), whole=True)
        return (change_of(effect="completes", needs=(tokens_need(more),)),)

    @cached_property
    def _recorded_selection(self) -> list[WantedItem]:
        chosen = [item for item in self._context.items if item.selected]
        wants = [(self._want(item.ref), item.evidence.score if item.evidence else 0.0) for item in chosen]
        return [replace(want, score=score) for want, score in wants if want is not None]

    def _want(self, ref: ItemRef) -> WantedItem | None:
        """Return an item as it competes for the room, or None when its size is not known."""
        if ref not in self._wanted:
            self._wanted[ref] = self._measured(ref)
        return self._wanted[ref]

    def _measured(self, ref: ItemRef) -> WantedItem | None:
        held, piece = self._held.get(ref), self._pieces.get(str(ref))
        if held is not None and piece is not None:
            return WantedItem(ref, piece.tokens, DEFAULT_PRIORITY if held.priority is None else held.priority)
        item = self._past.item(ref)
        if item is None:
            return None
        if isinstance(item, Tool):
            name = offer([item]).names[ref]
            return WantedItem(ref, item_tokens(item, name, family=family_for(self._context.settings)))
        return WantedItem(ref, item_tokens(item), item.priority)

    def _size(self, change: Change) -> tuple[bool, int, float]:
        """Order changes: settings before acts by hand, fewer before more, smaller before larger."""
        by_hand = any(need.what in ("add", "remove", "agent") for need in change.needs)
        return (by_hand, len(change.needs), sum(map(self._distance, change.needs)))

    def _distance(self, need: Need) -> float:
        value = float(need.value or 0)
        if need.what == "tokens":
            return value / max(self._context.budget.window_tokens, 1)
        if need.domain is None or need.what == "enabled":
            return 1.0
        now = float(getattr(self._of("tool" if need.domain == "tools" else "text"), need.what))
        return abs(value - now) / (10 if need.what == "top_n" else 1)


_ABSENCES: Mapping[IncludeMode, str] = {
    "always": "not in the session: it was removed, or added to the agent after the session started",
    "manual": "manual item; it was not added to this session",
    "agent": "not a candidate in this turn",
}
_STANDINGS: Mapping[Standing, str] = {
    "ready": "",
    "disabled": "disabled by the agent",
    "not_permitted": "forbidden by the agent",
    "server_down": "its server was not connected",
}
_REMEDIES: Mapping[str, str] = {
    "disabled": "`enabled: true` in its file",
    "not_permitted": "a permission other than `forbidden`",
    "server_down": "connect its server",
    "missing": "put the item back into the agent",
}
