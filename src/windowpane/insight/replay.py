"""A past request once more: rebuilt byte for byte, and its selection run again under other circumstances.

Rebuilding needs the log and the blobs alone. Other settings are applied to the scores that were recorded. Another query
or other texts are measured again, against the items as the agent had them then. No model is called.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from windowpane.api.replay import Rebuilt, ReplayedItem, Rerun, WhatIf
from windowpane.context.items import Item, ItemRef, Tool
from windowpane.context.request import Evidence
from windowpane.errors import InvalidInputError, UnknownItemError
from windowpane.insight.past import PastTurn, Records
from windowpane.insight.refit import WantedItem, WindowRoom, pieces_with, with_finders
from windowpane.insight.rescore import scored, settings_of
from windowpane.request.assemble import item_tokens
from windowpane.request.fit import fit
from windowpane.request.selector import Selection
from windowpane.search.settings import SearchSettings, search_settings, written_out
from windowpane.text.tokens import Family, family_for
from windowpane.tools.names import offer

WAIT_S = 60.0
"""How long a replay waits for vectors. No user waits for a reply."""

RECENT_MESSAGES = 64


def rebuilt(past: PastTurn) -> Rebuilt:
    """Return whether a past turn's request is, byte for byte, the one that was recorded."""
    damages = past.damages
    return Rebuilt(
        record=past.record,
        identical=not damages,
        damages=damages,
        messages=len(past.request.messages) if not damages else 0,
        tools=len(past.request.tools) if not damages else 0,
        used_tokens=past.context.budget.used_tokens,
    )


async def rerun(engine: Records, past: PastTurn, what_if: WhatIf) -> Rerun:
    """Run a past turn's selection again.

    Raises:
        InvalidInputError: the turn's record is too old to be run again, or the query is empty.
        InvalidSettingError: a search setting cannot be used.
        UnknownItemError: a text or a description is given for an item that was no candidate.
    """
    as_recorded = what_if.query is None and not what_if.texts and not what_if.descriptions
    if as_recorded and "context" not in what_if.search:
        return decided_again(past, what_if.search)
    return await _measured_again(engine, past, what_if, _settings(past, what_if.search))


def decided_again(past: PastTurn, search: Mapping[str, Any]) -> Rerun:
    """Decide about a past turn's candidates again, by the scores they got, under other search settings.

    Raises:
        InvalidInputError: the turn's record is too old to be run again.
        InvalidSettingError: a search setting cannot be used.
    """
    settings = _settings(past, search)
    was = _was_selected(past)
    outcomes = [
        ReplayedItem(
            ref=choice.key,
            selected=choice.kept,
            was_selected=choice.key in was,
            code=choice.code,
            reason=choice.reason,
            evidence=Evidence(
                score=choice.score,
                meaning=choice.meaning,
                words=choice.words,
                rank=choice.rank,
                passage=choice.passage if choice.passage and choice.passage.text else None,
                cut_off=choice.cut_off,
                floor=choice.floor,
            ),
        )
        for domain, candidates in scored(past.context).items()
        for choice in candidates.under(settings.of(domain))
    ]
    query, degraded = past.context.query.text, past.context.degraded
    return _finished(past, query, settings, outcomes, measured=False, degraded=degraded)


def _settings(past: PastTurn, changes: Mapping[str, Any]) -> SearchSettings:
    before = settings_of(past.context)
    if before is None:
        raise InvalidInputError("this turn was recorded without its search settings; it cannot be run again")
    return _laid_over(before, changes)


def _laid_over(settings: SearchSettings, changes: Mapping[str, Any]) -> SearchSettings:
    """Return settings with changes: those of a domain for it, the others for both."""
    search_settings(changes)
    whole = ("text", "tools", "deadline_s", "context")
    common = {name: value for name, value in changes.items() if name not in whole}
    written = written_out(settings)
    written["context"] = changes.get("context", settings.context)
    for domain in ("text", "tools"):
        own = {**common, **changes.get(domain, {})}
        # With a preset, everything but whether selection is on is the preset's.
        kept = {"enabled": written[domain]["enabled"]} if "preset" in own else written[domain]
        written[domain] = {**kept, **own}
    return search_settings(written)


async def _measured_again(engine: Records, past: PastTurn, what_if: WhatIf, settings: SearchSettings) -> Rerun:
    message = past.message if what_if.query is None else what_if.query
    if not message.strip():
        raise InvalidInputError("the query is empty")
    items = _candidates(past)
    for ref in dict.fromkeys((*what_if.texts, *what_if.descriptions)):
        item = items.get(ref)
        if item is None or isinstance(item, Tool):
            raise UnknownItemError(str(ref), tuple(str(known) for known in items if known.name == ref.name))
        items[ref] = replace(
            item,
            text=what_if.texts.get(ref, item.text),
            description=what_if.descriptions.get(ref, item.description),
        )
    recent = (
        await engine.conversations.messages(past.session_id, before=past.seq, limit=RECENT_MESSAGES)
        if past.seq > 1
        else []
    )
    search = written_out(replace(settings, deadline_s=WAIT_S))
    selection = await engine.agent_items.select(message, tuple(items.values()), search, recent=recent)
    outcomes = _outcomes(past, selection)
    return _finished(
        past, selection.query.text, settings, outcomes, measured=True, degraded=selection.degraded, items=items
    )


def _candidates(past: PastTurn) -> dict[ItemRef, Item]:
    """Return everything that the turn could have selected, as it was."""
    refs = [item.ref for item in past.context.items if item.selected]
    refs += [candidate.ref for candidate in past.context.candidates]
    found = {ref: past.item(ref) for ref in sorted(refs, key=lambda ref: ref.sort_key)}
    missing = [str(ref) for ref, item in found.items() if item is None]
    if missing:
        raise InvalidInputError(
            f"the turn was recorded without the texts of what it could have selected ({', '.join(missing[:3])}); "
            "only other settings can be tried"
        )
    return {ref: item for ref, item in found.items() if item is not None}


def _outcomes(past: PastTurn, selection: Selection) -> list[ReplayedItem]:
    was = _was_selected(past)
    outcomes = [
        ReplayedItem(
            ref=chosen.item.ref,
            selected=True,
            was_selected=chosen.item.ref in was,
            code="selected",
            reason=chosen.reason,
            evidence=chosen.evidence,
        )
        for chosen in selection.chosen
    ]
    return outcomes + [
        ReplayedItem(
            ref=candidate.ref,
            selected=False,
            was_selected=candidate.ref in was,
            code=candidate.code,
            reason=candidate.reason,
            evidence=candidate.evidence,
        )
        for candidate in selection.left_out
    ]


def _was_selected(past: PastTurn) -> set[ItemRef]:
    return {item.ref for item in past.context.items if item.selected}


def _finished(
    past: PastTurn,
    query: str,
    settings: SearchSettings,
    outcomes: list[ReplayedItem],
    *,
    measured: bool,
    degraded: tuple[str, ...],
    items: Mapping[ItemRef, Item] | None = None,
) -> Rerun:
    kept = _kept(past, outcomes, items or {})
    ordered = sorted(outcomes, key=lambda o: (not o.selected, -(o.evidence.score if o.evidence else 0), o.ref.sort_key))
    return Rerun(
        query=query,
        search=written_out(settings),
        measured=measured,
        outcomes=tuple(
            replace(outcome, fits=kept.get(str(outcome.ref))) if outcome.selected else outcome for outcome in ordered
        ),
        entered=tuple(o.ref for o in ordered if o.selected and not o.was_selected),
        left=tuple(o.ref for o in ordered if o.was_selected and not o.selected),
        degraded=degraded,
    )


def _kept(past: PastTurn, outcomes: list[ReplayedItem], items: Mapping[ItemRef, Item]) -> dict[str, bool]:
    """Return for each selected item whether there was room for it; nothing when the record does not say."""
    if past.context.budget.pieces_tokens is None:
        return {}
    family = family_for(past.context.settings)
    wanted = [_wanted(items.get(o.ref) or past.item(o.ref), o, family) for o in outcomes if o.selected]
    pieces = pieces_with(past.context, [want for want in wanted if want is not None])
    decided = ((o.ref, "selected" if o.selected else o.code) for o in outcomes)
    pieces = with_finders(past.context, pieces, decided)
    placed = fit(pieces, WindowRoom.of(past.context).tokens(pieces))
    return {fitted.piece.key: fitted.kept for fitted in placed}


def _wanted(item: Item | None, outcome: ReplayedItem, family: Family) -> WantedItem | None:
    if item is None:
        return None
    score = outcome.evidence.score if outcome.evidence else 0.0
    if isinstance(item, Tool):
        return WantedItem(item.ref, item_tokens(item, offer([item]).names[item.ref], family=family), score=score)
    return WantedItem(item.ref, item_tokens(item), item.priority, score)
