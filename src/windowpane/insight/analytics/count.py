"""What a stretch of a session's log adds to the analytics store: numbers by owner, day, agent and model, and no text.

A turn is counted when it has finished, once. What people do between two turns is counted with the turn before it: an
item that is added by hand right after an answer is one that the answer had needed.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import get_args
from urllib.parse import urlsplit

from windowpane.api.turns import ItemUse
from windowpane.calls.ledger import RecordedCall, calls_of
from windowpane.context.calls import CallPurpose
from windowpane.context.events import (
    ApprovalRequested,
    CallEnded,
    CallSent,
    HistoryCleared,
    ItemAdded,
    ItemRemoved,
    ModelReplied,
    Recorded,
    RequestBuilt,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import IncludeMode, ItemRef
from windowpane.context.messages import Step
from windowpane.context.request import ContextItem
from windowpane.errors import BlobNotFoundError
from windowpane.insight.analytics.count_cache import count_cache
from windowpane.insight.analytics.count_calls import count_call_without_turn, count_calls, input_costs
from windowpane.insight.compare import prompt_bytes
from windowpane.insight.past import PastTurn, steps_of
from windowpane.insight.use import page_used, use
from windowpane.request.record import context_of, last_built, texts_of
from windowpane.text.shared_prefix import shared_prefix

SCORE_STEPS = 10
SCORE_PARTS = 10_000
"""Scores have four decimals and are added up as whole numbers."""

WAYS_IN = (*get_args(IncludeMode), "carried")
"""How an item came into a request: by its mode, or because it stands there from an earlier turn."""

LATENCY_BASE = 1.1
"""Times are counted in steps, each so much longer than the one before."""

Judge = Callable[[PastTurn], Sequence[ItemUse]]
"""Tells which items a turn's answer made use of."""

Key = tuple[str | int, ...]
"""A row: the table, owner, day, agent, model, and what else tells rows of that table apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a session's log is counted: through which event, and its last turn: where it began, and its request."""

    seq: int = 0
    turn: int = 0
    turn_seq: int = 0
    day: int = 0
    model: str = ""
    record: BlobHash | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Which items a turn turned out to need: those that were used, and those that were added by hand after it."""

    turn: int
    seq: int
    day: int
    used: tuple[ItemRef, ...] = ()
    added: tuple[ItemRef, ...] = ()


@dataclass(slots=True)
class Counts:
    """What is to be added. `cleared` is the last turn whose lessons are to be forgotten."""

    owner: str
    agent: str
    progress: Progress
    judge: Judge = use
    rows: dict[Key, Counter[str]] = field(default_factory=dict[Key, Counter[str]])
    lessons: dict[int, Lesson] = field(default_factory=dict[int, Lesson])
    texts_bytes: int = 0
    cleared: int = 0

    def add(self, table: str, day: int, model: str, *detail: str | int, **counters: int) -> None:
        """Add numbers to a row."""
        row = self.rows.setdefault((table, self.owner, day, self.agent, model, *detail), Counter())
        row.update(counters)

    def add_calls(self, day: int, model: str, purpose: CallPurpose, counters: Mapping[str, int]) -> None:
        """Add calls to what was spent, and to their purpose."""
        self.add("call", day, model, purpose, **counters)
        unknown = {"without_usage": "calls_without_usage", "without_price": "calls_without_price"}
        self.add("turn", day, model, **{unknown.get(name, name): number for name, number in counters.items()})

    def learn(self, lesson: Lesson) -> None:
        """Add to what is known about a turn."""
        known = self.lessons.get(lesson.turn)
        if known is not None:
            lesson = replace(known, used=known.used + lesson.used, added=known.added + lesson.added)
        self.lessons[lesson.turn] = lesson


@dataclass(frozen=True, slots=True)
class Stretch:
    """A finished turn as the log has it, and the record of its request; None where there is none."""

    turn: int
    events: tuple[Recorded, ...]
    record: BlobHash | None

    @property
    def told(self) -> bool:
        """Tell whether it took place elsewhere: it was answered, and no request was made for it here."""
        models = [entry.event.step.model for entry in self.events if isinstance(entry.event, ModelReplied)]
        asked = any(isinstance(entry.event, RequestBuilt | CallSent) for entry in self.events)
        return bool(models) and not any(models) and not asked


def stretches(events: Sequence[Recorded]) -> list[Stretch]:
    """Return the turns that have begun and finished in a stretch of a log."""
    found: list[Stretch] = []
    begun: int | None = None
    for place, entry in enumerate(events):
        if isinstance(entry.event, TurnStarted):
            begun = place
        elif isinstance(entry.event, TurnFinished) and begun is not None:
            own = tuple(events[begun : place + 1])
            built = last_built(own, entry.event.turn)
            found.append(Stretch(entry.event.turn, own, built and built.request))
            begun = None
    return found


def settled(events: Sequence[Recorded]) -> int:
    """Return the sequence number up to which a stretch of a log can be counted: where an open turn begins, it ends."""
    through = events[0].seq - 1
    waiting = False
    for entry in events:
        waiting = isinstance(entry.event, TurnStarted) or (waiting and not isinstance(entry.event, TurnFinished))
        through = through if waiting else entry.seq
    return through


def count_events(
    session_id: SessionId,
    owner: str,
    agent: str,
    progress: Progress,
    events: Sequence[Recorded],
    texts: Mapping[BlobHash, str],
    judge: Judge = use,
) -> Counts:
    """Return what the settled part of some events adds.

    `events` follow `progress`; `texts` hold the records of their turns and of the turn before, with what they name. A
    turn whose record is not there any more is counted without it. `judge` tells which items an answer made use of.
    """
    through = settled(events) if events else progress.seq
    made = Counts(owner, agent, progress, judge)
    turns = {stretch.events[0].seq: stretch for stretch in stretches(events) if stretch.events[-1].seq <= through}
    before = _past(session_id, Stretch(progress.turn, (), progress.record), texts)
    for entry in events:
        if entry.seq > through:
            break
        stretch = turns.get(entry.seq)
        if stretch is not None and not stretch.told:
            before = _count_turn(made, session_id, stretch, before, texts)
        _count_act(made, entry, before)
        if isinstance(entry.event, CallSent | CallEnded):
            add = partial(made.add_calls, day_of(entry.at), entry.event.model)
            count_call_without_turn(entry, add)
    made.progress = replace(made.progress, seq=through)
    return made


def day_of(at: datetime) -> int:
    """Return the number of a day, in UTC."""
    return at.astimezone(UTC).toordinal()


def latency_step(latency_ms: float) -> int:
    """Return the step that a time is counted in."""
    return round(math.log(max(latency_ms, 1)) / math.log(LATENCY_BASE))


def _past(session_id: SessionId, stretch: Stretch, texts: Mapping[BlobHash, str]) -> PastTurn | None:
    if stretch.record is None or stretch.record not in texts:
        return None
    body = texts[stretch.record]
    past = PastTurn(
        session_id=session_id,
        turn=stretch.turn,
        seq=stretch.events[0].seq if stretch.events else 0,
        record=stretch.record,
        body=body,
        context=context_of(body, texts),
        texts={name: texts[name] for name in texts_of(body) if name in texts},
        steps=steps_of(stretch.events, stretch.turn),
        calls=_own_calls(stretch),
    )
    try:
        past.request  # noqa: B018 – asked once here, so that no function below has to expect a lost text
    except BlobNotFoundError:
        return None
    return past


def _count_turn(
    made: Counts,
    session_id: SessionId,
    stretch: Stretch,
    before: PastTurn | None,
    texts: Mapping[BlobHash, str],
) -> PastTurn | None:
    past = _past(session_id, stretch, texts)
    began, ended = stretch.events[0], stretch.events[-1]
    day = day_of(began.at)
    calls = _own_calls(stretch)
    # A recorded session has no agent that names a model; its calls do.
    asked = [call.model for call in calls if call.purpose == "answer"]
    model = past.context.settings.model if past else next(reversed(asked), "")
    finished = ended.event
    outcome = finished.outcome if isinstance(finished, TurnFinished) else "completed"
    steps = steps_of(stretch.events, stretch.turn)
    made.add("turn", day, model, turns=1, begun=int(made.progress.turn == 0), active=int(made.progress.day != day))
    made.add("tally", day, model, "outcome", outcome, count=1)
    made.add("tally", day, model, "hour", f"{began.at.astimezone(UTC).hour:02}", count=1)
    _count_calls(made, day, model, steps, calls)
    _count_latency(made, day, model, stretch.events, steps)
    _count_cache(made, day, model, stretch.events, steps)
    if past is not None:
        _count_request(made, day, past, before)
    made.progress = replace(
        made.progress,
        turn=stretch.turn,
        turn_seq=began.seq,
        day=day,
        model=model,
        record=past.record if past else made.progress.record,
    )
    return past or before


def _own_calls(stretch: Stretch) -> tuple[RecordedCall, ...]:
    return tuple(call for call in calls_of(stretch.events) if call.turn == stretch.turn)


def _count_calls(made: Counts, day: int, model: str, steps: Sequence[Step], calls: Sequence[RecordedCall]) -> None:
    known = count_calls(calls, model, partial(made.add_calls, day, model))
    made.add(
        "turn",
        day,
        model,
        turns_without_price=int(not known),
        tool_calls=sum(len(step.tool_calls) for step in steps),
        tool_errors=sum(result.is_error for step in steps for result in step.results),
    )


def _count_latency(made: Counts, day: int, model: str, events: Sequence[Recorded], steps: Sequence[Step]) -> None:
    began, ended = events[0], events[-1]
    built = next((entry for entry in events if isinstance(entry.event, RequestBuilt)), None)
    times: dict[str, float] = {}
    if built is not None:
        times["prepare"] = (built.at - began.at).total_seconds() * 1000
    if steps:
        times["model"] = sum(step.latency_ms for step in steps)
    if any(step.results for step in steps):
        times["tools"] = sum(result.latency_ms for step in steps for result in step.results)
    # While a turn waits for a person, nothing of ours takes time.
    if not any(isinstance(entry.event, ApprovalRequested) for entry in events):
        times["whole"] = (ended.at - began.at).total_seconds() * 1000
    for stage, latency_ms in times.items():
        made.add("latency", day, model, stage, latency_step(latency_ms), count=1, total_ms=max(round(latency_ms), 0))


def _count_cache(made: Counts, day: int, model: str, events: Sequence[Recorded], steps: Sequence[Step]) -> None:
    counted = count_cache(events, steps)
    made.add("turn", day, model, **counted.counters)
    for code, item, counters in counted.rebases:
        made.add("rebase", day, model, code, item, **counters)


def _count_request(made: Counts, day: int, past: PastTurn, before: PastTurn | None) -> None:
    context = past.context
    model = context.settings.model
    query = context.query
    made.add("turn", day, model, request_tokens=context.budget.used_tokens, degraded=int(bool(context.degraded)))
    made.add("turn", day, model, follow_ups=int(query.context_share > 0), small_talk=int(query.small_talk))
    made.add("tally", day, model, "mode", context.settings.mode, count=1)
    made.texts_bytes += len(past.body.encode("utf-8", "surrogatepass"))
    known = set(before.texts if before else ())
    made.texts_bytes += sum(len(text) for name, text in past.texts.items() if name not in known)
    if before is not None:
        old, new = prompt_bytes(before), prompt_bytes(past)
        made.add("turn", day, model, compared=1, prefix_bytes=len(old), kept_bytes=shared_prefix(old, new))
    costs = input_costs(past)
    for part, cost in zip(context.parts, costs.parts, strict=True):
        tokens = part.tokens if part.status != "left_out" else 0
        cut = int(part.status != "used")
        made.add("part", day, model, part.kind, tokens=tokens, cost_nano=cost, cut=cut)
    for kind in {part.kind for part in context.parts if part.status != "left_out"}:
        made.add("part", day, model, kind, requests=1)
    _count_items(made, day, past, costs.items)
    _count_sites(made, day, past)


def _count_items(made: Counts, day: int, past: PastTurn, costs: Mapping[ItemRef, int]) -> None:
    context, model = past.context, past.context.settings.model
    uses = {found.ref: found for found in made.judge(past)}
    for item in context.items:
        _count_item(made, day, item, uses.get(item.ref), model, costs.get(item.ref, 0))
    for item in context.standing:
        _count_sent(made, day, item, uses.get(item.ref), model, costs.get(item.ref, 0), "carried")
    for candidate in context.candidates:
        name = item_key(candidate.ref)
        made.add("item", day, model, name, considered=1)
        if candidate.evidence is not None:
            score = candidate.evidence.score
            made.add("item", day, model, name, scores=_whole(score), **{f"left_out_{score_step(score)}": 1})
    used = tuple(ref for ref, found in uses.items() if found.used)
    selected = [item for item in context.items if item.selected and item.sent]
    hits = sum(item.ref in used for item in selected)
    probably = sum(uses[item.ref].verdict == "probably" for item in selected if item.ref in uses)
    made.add("turn", day, model, selected=len(selected), selected_used=hits, selected_probably=probably)
    if used or selected or context.candidates:
        made.learn(Lesson(turn=past.turn, seq=past.seq, day=day, used=used))


def _count_item(made: Counts, day: int, item: ContextItem, found: ItemUse | None, model: str, cost_nano: int) -> None:
    name = item_key(item.ref)
    if not item.sent:
        made.add("item", day, model, name, not_sent=1)
    else:
        _count_sent(made, day, item, found, model, cost_nano, item.include_mode)
    if item.selected:
        made.add("item", day, model, name, considered=1, selected=1)
        if item.evidence is not None:
            step, hit = score_step(item.evidence.score), int(found is not None and found.used)
            made.add("item", day, model, name, scores=_whole(item.evidence.score))
            made.add("item", day, model, name, **{f"selected_{step}": 1, f"used_{step}": hit})


def _count_sent(
    made: Counts, day: int, item: ContextItem, found: ItemUse | None, model: str, cost_nano: int, way_in: str
) -> None:
    verdict = found.verdict if found is not None else "unknown"
    counters = {
        "included": 1,
        way_in: 1,
        "tokens": item.tokens,
        "cost_nano": cost_nano,
        "probably": int(verdict == "probably"),
        "no_trace": int(verdict == "no_trace"),
        "no_trace_tokens": item.tokens if verdict == "no_trace" else 0,
        "unused_tokens": item.tokens if verdict == "not_called" else 0,
    }
    if found is not None and found.how is not None:
        counters |= {"used": 1, found.how: 1}
    made.add("item", day, model, item_key(item.ref), **counters)


def _count_sites(made: Counts, day: int, past: PastTurn) -> None:
    for message in past.request.messages:
        if message.part == "fetched":
            site = _site(message.name)
            if site:
                used = int(page_used(past, message))
                made.add("site", day, past.context.settings.model, site, given=1, used=used)


def _site(name: str) -> str:
    """Return the host of a fetched page from the name of its part: the kind, a blank, the address."""
    try:
        return urlsplit(name.partition(" ")[2]).hostname or ""
    except ValueError:
        return ""


def _count_act(made: Counts, entry: Recorded, before: PastTurn | None) -> None:
    """Count what a person did between two turns, or by naming an item in a message."""
    event = entry.event
    if isinstance(event, HistoryCleared):
        made.cleared = event.turns
        made.lessons = {turn: lesson for turn, lesson in made.lessons.items() if turn > event.turns}
        return
    now = made.progress
    if not isinstance(event, ItemAdded | ItemRemoved) or event.actor != "user" or not now.turn:
        return
    day = day_of(entry.at)
    if isinstance(event, ItemRemoved):
        made.add("item", day, now.model, item_key(event.ref), removed_by_hand=1)
        return
    ref = event.item.ref
    made.add("item", day, now.model, item_key(ref), added_by_hand=1)
    held = before.context.item(ref) if before else None
    # What had been selected already and is now kept for good was not missed.
    if held is None or not held.sent or not held.selected:
        made.add("turn", day, now.model, missed=1)
        made.learn(Lesson(turn=now.turn, seq=now.turn_seq, day=day, added=(ref,)))


def item_key(ref: ItemRef) -> str:
    """Return an item's name in the analytics store; `item_ref` reads it."""
    return "\x1f".join((ref.type, ref.server or "", ref.name))


def score_step(score: float) -> int:
    """Return which tenth a score lies in."""
    return min(int(score * SCORE_STEPS), SCORE_STEPS - 1)


def _whole(score: float) -> int:
    return round(score * SCORE_PARTS)


def blobs_needed(progress: Progress, turns: Iterable[Stretch]) -> list[BlobHash]:
    """Return the records that counting some turns needs: theirs, and that of the turn before."""
    names = [progress.record, *(stretch.record for stretch in turns)]
    return list(dict.fromkeys(name for name in names if name is not None))
