"""Recall earlier messages that bear on the present one.

What lies before the recent messages is searched for the message alone, and the nearest messages come back within a
token budget, oldest first; messages that stand together come back together. What was changed later says so and comes
with what changed it. Where nothing is near enough nothing is recalled: an old conversation is no reason to repeat it.
"""

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan

import numpy as np

from windowpane.context.ids import SessionId
from windowpane.context.messages import Message, ModelReply, Step, UserMessage
from windowpane.context.request import Evidence
from windowpane.memory.changes import changed_by, states
from windowpane.memory.recent import text_of
from windowpane.search.base import Floats, SearchQuery
from windowpane.search.history import HistoryIndex
from windowpane.search.index import DEADLINE_S
from windowpane.search.past import HistoryResult, Spoken
from windowpane.search.query import is_small_talk, query, said_last
from windowpane.text.blocks import Recalled, spoken, where
from windowpane.text.tokens import count, cut_to

BUDGET_TOKENS = 1000
FLOOR = 0.55
"""When the best message scores less than this, nothing is recalled."""

ASKED_BACK_FLOOR = 0.15
"""The same for a question that says itself that it is about the past."""

GATE = 0.47
"""What `likeness` must reach before anything is recalled."""

ASKED_BACK_GATE = 0.25
"""The same for a question that says itself that it is about the past."""

COVERAGE_WEIGHT = 0.4
"""How much it counts towards the gate that a message has all words of the question."""

LEAST_SCORE = 0.1
"""Below this a message is not worth its tokens, whatever room is left, unless it stands next to one that is needed."""

MOST_CONSIDERED = 300
LONGEST_MESSAGE_TOKENS = 250
"""Of a longer message the passage that matched and what follows it is recalled."""

TOO_LONG = -1
"""Stands for the size of such a message."""

GROUP_TOKENS = 14
"""What a group of messages costs beyond their text: the line that says when it was."""

CHANGE_TOKENS = 8
"""What it costs to say that a message was changed later."""

Read = Callable[[int], Awaitable[Sequence[Message]]]
"""Returns a session's messages after a sequence number, oldest first; after 0, all of them."""


@dataclass(frozen=True, slots=True)
class Recollection:
    """What was recalled, oldest first, and what was amiss in the search."""

    recalled: tuple[Recalled, ...] = ()
    degraded: tuple[str, ...] = ()


async def recall(
    index: HistoryIndex,
    session_id: SessionId,
    question: str,
    *,
    read: Read,
    message_count: int,
    recent: Sequence[Spoken],
    as_of: int = 0,
    budget_tokens: int = BUDGET_TOKENS,
    deadline_s: float = DEADLINE_S,
) -> Recollection:
    """Return what lies before the recent messages and bears on a question.

    `message_count` is how many messages `read` gives in all; when it does not fit what the index holds, the
    conversation was cleared in between and is read from its beginning. `as_of` is where the log stood when it was read.
    """
    if not recent or budget_tokens <= 0 or is_small_talk(question):
        return Recollection()
    held = index.held(session_id)
    new = await read(held.seq)
    if held.count + len(new) != message_count:
        index.forget(session_id)
        new = await read(0)
    search = partial(index.search, session_id, before_seq=recent[0].seq, as_of=as_of, deadline_s=deadline_s)
    result = await search(new, SearchQuery(question))
    if asks_back(question) and likeness(result) < GATE:
        # "What did we decide?" says nothing about what: the turns before it do.
        asked = query(question, said_last(recent))
        result = await search((), asked) if asked.context_share else result
    return Recollection(choose(result, question, budget_tokens, recent=recent), result.degraded)


def choose(
    result: HistoryResult, question: str, budget_tokens: int = BUDGET_TOKENS, *, recent: Sequence[Spoken] = ()
) -> tuple[Recalled, ...]:
    """Return the best messages that fit the budget, grouped where they stand together, oldest first.

    `recent` are the messages that are sent anyway; what they change is marked.
    """
    gate, floor = (ASKED_BACK_GATE, ASKED_BACK_FLOOR) if asks_back(question) else (GATE, FLOOR)
    scores = score(result)
    if not len(scores) or scores.max() < floor or likeness(result) < gate:
        return ()
    order = np.lexsort((-np.arange(len(scores)), -result.fused))
    chosen = _Chosen(result, recent, budget_tokens)
    likely: list[float] = scores.tolist()
    considered: list[int] = order[:MOST_CONSIDERED].tolist()
    there, sizes = chosen.messages, result.sizes
    for position in considered:
        before, after = position - 1, position + 1
        alone = before not in there and after not in there and position not in there
        # Keep going where it does not fit: a shorter message further down may. Most do not fit, so they are passed
        # over here, before anything else is looked at.
        if alone and (likely[position] < LEAST_SCORE or sizes[position] + GROUP_TOKENS > chosen.room_tokens):
            continue
        if (
            likely[position] >= LEAST_SCORE
            or (before in there and likely[before] >= floor)
            or (after in there and likely[after] >= floor)
        ):
            chosen.add(position)
    groups = _runs(sorted(chosen.messages))
    fused: list[float] = result.fused.tolist()
    best = [max(run, key=lambda position: (fused[position], position)) for run in groups]
    best_first = sorted(range(len(groups)), key=lambda number: (-fused[best[number]], groups[number]))
    ranks = {number: rank for rank, number in enumerate(best_first, start=1)}
    return tuple(
        [_recalled(likely, run, best[number], chosen, ranks[number], floor) for number, run in enumerate(groups)]
    )


def likeness(result: HistoryResult) -> float:
    """Return how much the nearest message and the one with most of the words speak for a recall at all.

    Nothing can be said of it where no meaning was measured; the score decides alone then.
    """
    measured = result.meaning[~np.isnan(result.meaning)]
    if not len(measured):
        return 1.0
    return round(float(measured.max() + COVERAGE_WEIGHT * result.coverage.max()), 6)


class _Chosen:
    """The messages that are recalled so far, by position, and what changed some of them."""

    def __init__(self, result: HistoryResult, recent: Sequence[Spoken], room_tokens: int) -> None:
        self.result = result
        self.messages: dict[int, Spoken] = {}
        self.changes: dict[int, UserMessage] = {}
        self._recent = [message for message in recent if isinstance(message, UserMessage) and states(message.content)]
        self._excerpts: dict[int, Spoken] = {}
        self._sizes = result.sizes
        self.room_tokens = room_tokens

    def add(self, position: int) -> None:
        """Take a message, with the one that changed it, if there is room for both."""
        tokens = self._cost(position)
        if tokens > self.room_tokens or not self._says_something(position):
            return
        change = self._change(position)
        if change is not None:
            changed_at = self._position_of(change, position)
            tokens += CHANGE_TOKENS + self._cost(changed_at, position)
            if tokens > self.room_tokens or not self._says_something(changed_at):
                return
            self.changes[self.result.messages[position].seq] = change
            self.messages[changed_at] = self._excerpt(changed_at)
        self.room_tokens -= tokens
        self.messages[position] = self._excerpt(position)

    def _says_something(self, position: int) -> bool:
        return bool(text_of(self.result.messages[position]).strip())

    def _cost(self, position: int, with_it: int | None = None) -> int:
        """Return what a message costs beyond those that are here, and beyond one that is taken with it."""
        there = self.messages
        if position in there or position == with_it:
            return 0
        tokens = self._sizes[position]
        if tokens <= 0:
            tokens = self._counted(position)
        before, after = position - 1, position + 1
        # One between two groups makes one of them.
        heads = 1 - (before in there or before == with_it) - (after in there or after == with_it)
        return GROUP_TOKENS * heads + tokens

    def _counted(self, position: int) -> int:
        """Count what a message costs; of one that is recalled whole, which most are, it is counted once."""
        excerpt = self._excerpt(position)
        tokens = spoken_tokens(excerpt)
        self._sizes[position] = tokens if excerpt is self.result.messages[position] else TOO_LONG
        return tokens

    def _excerpt(self, position: int) -> Spoken:
        found = self._excerpts.get(position)
        if found is None:
            found = self._excerpts[position] = _excerpt(self.result, position)
        return found

    def _position_of(self, message: UserMessage, default: int) -> int:
        """Return where a message stands among those that were searched, or the default where it does not."""
        messages = self.result.messages
        position = bisect_left(messages, message.seq, key=lambda other: other.seq)
        return position if position < len(messages) and messages[position].seq == message.seq else default

    def _change(self, position: int) -> UserMessage | None:
        message = self.result.messages[position]
        if not isinstance(message, UserMessage) or not states(message.content):
            return None
        later = [other for other in self.result.sharing(position) if isinstance(other, UserMessage)]
        return changed_by(message, [*later, *self._recent])


_ASKS_BACK = re.compile(
    r"""\b(?:
      remind\ me|remember|recall|forgot(?:ten)?|earlier|previously|before|already|last\ time
    | at\ the\ (?:beginning|start)
    | (?:i|we|you)(?:\ have|'ve|\ had|'d)?\ (?:said|told|mentioned|talked|spoke|discussed|agreed|decided|chose)
    | did\ (?:i|we|you)|was\ it|were\ we|have\ (?:i|we|you)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


def asks_back(question: str) -> bool:
    """Tell whether a question says itself that it is about what was said before."""
    return _ASKS_BACK.search(question) is not None


def spoken_tokens(message: Spoken) -> int:
    """Return what a recalled message costs."""
    return count(f"{spoken(message)}\n")


@dataclass(frozen=True, slots=True)
class RecallCalibration:
    """How sure each measurement makes us, as a logistic regression (`python bench/memory.py --fit`)."""

    base: float = -5.65
    per_fused: float = 0.53
    per_meaning: float = 8.98
    per_coverage: float = 9.56
    words_base: float = -2.79
    words_per_fused: float = 0.37
    words_per_coverage: float = 12.95


CALIBRATION = RecallCalibration()


def score(result: HistoryResult) -> Floats:
    """Return how likely each message is to bear on the question, between 0 and 1."""
    by = CALIBRATION
    unknown = np.isnan(result.meaning)
    full = np.array((by.base, by.per_fused, by.per_meaning, by.per_coverage))
    words = np.array((by.words_base, by.words_per_fused, 0.0, by.words_per_coverage))
    columns = np.array((np.ones(len(unknown)), result.fused, np.where(unknown, 0.0, result.meaning), result.coverage))
    evidence = full @ columns
    if unknown.any():
        evidence = np.where(unknown, words @ columns, evidence)
    return (1 / (1 + np.exp(-evidence))).round(4)


def _excerpt(result: HistoryResult, position: int) -> Spoken:
    """Return a message, or of a long one the passage that matched and what follows it."""
    message = result.messages[position]
    text = text_of(message)
    size = result.sizes[position]
    if size > 0 or (size != TOO_LONG and count(text) <= LONGEST_MESSAGE_TOKENS):
        return message
    passage = result.passage(position)
    start = passage.start if passage is not None else 0
    part = cut_to(text[start:], LONGEST_MESSAGE_TOKENS)
    lead, tail = "[…] " if start else "", "" if text.endswith(part) else " […]"
    return _with_text(message, f"{lead}{part}{tail}")


def _with_text(message: Spoken, text: str) -> Spoken:
    if isinstance(message, UserMessage):
        return replace(message, content=text)
    return replace(message, model_reply=ModelReply((Step(text=text),)))


def _runs(positions: Sequence[int]) -> list[list[int]]:
    """Group positions that follow one another."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][-1] == position - 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs


def _recalled(scores: Sequence[float], run: list[int], best: int, chosen: _Chosen, rank: int, floor: float) -> Recalled:
    result = chosen.result
    meaning = float(result.meaning[best])
    messages = tuple([chosen.messages[position] for position in run])
    changes = {message.seq: chosen.changes[message.seq] for message in messages if message.seq in chosen.changes}
    around = f", with {len(run) - 1} around it" if len(run) > 1 else ""
    changed = "".join([f"; message {seq} was later changed in {where(change)}" for seq, change in changes.items()])
    return Recalled(
        messages=messages,
        evidence=Evidence(
            score=scores[best],
            meaning=None if isnan(meaning) else meaning,
            words=float(result.words[best]),
            rank=rank,
            floor=floor,
        ),
        reason=f"message {result.messages[best].seq} is relevant to the question{around}{changed}",
        changes=changes,
    )
