"""Recall earlier messages that bear on the present one.

What lies before the recent messages is searched, and the nearest messages come back within a token budget, best first;
messages that stand together come back together. Where nothing is near enough nothing is recalled: an old
conversation is no reason to repeat it.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windowpane.context.ids import SessionId
from windowpane.context.messages import Message, ModelReply, Step, UserMessage
from windowpane.context.request import Evidence
from windowpane.memory.recent import text_of
from windowpane.search.base import Floats
from windowpane.search.history import HistoryIndex, HistoryResult, Spoken
from windowpane.search.index import DEADLINE_S
from windowpane.search.query import query, said
from windowpane.text.blocks import Recalled
from windowpane.text.tokens import count, cut_to

BUDGET_TOKENS = 1000
FLOOR = 0.55
"""When the best message scores less than this, nothing is recalled."""

ASKED_BACK_FLOOR = 0.15
"""The same for a question that says itself that it is about the past."""

LEAST_SCORE = 0.1
"""Below this a message is not worth its tokens, whatever room is left, unless it stands next to one that is needed."""

MOST_CONSIDERED = 300
LONGEST_MESSAGE_TOKENS = 250
"""Of a longer message the passage that matched and what follows it is recalled."""

GROUP_TOKENS = 6
"""What a group of messages costs beyond their text."""

Read = Callable[[int], Awaitable[Sequence[Message]]]
"""Returns a session's messages after a sequence number, oldest first; after 0, all of them."""


@dataclass(frozen=True, slots=True)
class Recollection:
    """What was recalled, best first, and what was amiss in the search."""

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
    budget_tokens: int = BUDGET_TOKENS,
    deadline_s: float = DEADLINE_S,
) -> Recollection:
    """Return what lies before the recent messages and bears on a question.

    `message_count` is how many messages `read` gives in all; when it does not fit what the index holds, the
    conversation was cleared in between and is read from its beginning.
    """
    asked = query(question, said(recent))
    if asked.small_talk or not recent or budget_tokens <= 0:
        return Recollection()
    held = index.held(session_id)
    new = await read(held.seq)
    if held.count + len(new) != message_count:
        index.forget(session_id)
        new = await read(0)
    result = await index.search(session_id, new, asked, before_seq=recent[0].seq, deadline_s=deadline_s)
    return Recollection(choose(result, budget_tokens, floor_for(question)), result.degraded)


def choose(result: HistoryResult, budget_tokens: int = BUDGET_TOKENS, floor: float = FLOOR) -> tuple[Recalled, ...]:
    """Return the best messages that fit the budget, grouped where they stand together, best group first."""
    scores = score(result)
    if not len(scores) or scores.max() < floor:
        return ()
    order = np.lexsort((-np.arange(len(scores)), -result.fused))
    chosen: dict[int, Spoken] = {}
    room = budget_tokens
    for position in map(int, order[:MOST_CONSIDERED]):
        beside = {position - 1, position + 1} & chosen.keys()
        if scores[position] < LEAST_SCORE and not any(scores[near] >= floor for near in beside):
            continue
        message = _excerpt(result, position)
        tokens = spoken_tokens(message) + (0 if beside else GROUP_TOKENS)
        # Keep going: a shorter message further down may still fit.
        if tokens <= room and text_of(message).strip():
            chosen[position] = message
            room -= tokens
    groups = sorted(_runs(sorted(chosen)), key=lambda run: (-max(result.fused[run]), run))
    return tuple(_recalled(result, scores, run, chosen, rank, floor) for rank, run in enumerate(groups, start=1))


_ASKS_BACK = re.compile(
    r"""\b(?:
      remind\ me|remember|recall|forgot(?:ten)?|earlier|previously|before|already|last\ time
    | at\ the\ (?:beginning|start)
    | (?:i|we|you)(?:\ have|'ve|\ had|'d)?\ (?:said|told|mentioned|talked|spoke|discussed|agreed|decided|chose)
    | did\ (?:i|we|you)|was\ it|were\ we|have\ (?:i|we|you)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


def floor_for(question: str) -> float:
    """Return how near the best message must be for anything to be recalled."""
    return ASKED_BACK_FLOOR if _ASKS_BACK.search(question) else FLOOR


def spoken_tokens(message: Spoken) -> int:
    """Return what a recalled message costs."""
    return count(f"{message.role.upper()}: {text_of(message)}\n")


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


def score(result: HistoryResult, by: RecallCalibration = CALIBRATION) -> Floats:
    """Return how likely each message is to bear on the question, between 0 and 1."""
    measured = ~np.isnan(result.meaning)
    full = np.array((by.base, by.per_fused, by.per_meaning, by.per_coverage))
    words = np.array((by.words_base, by.words_per_fused, 0.0, by.words_per_coverage))
    meaning = np.where(measured, result.meaning, 0.0)
    columns = np.stack((np.ones(len(meaning)), result.fused, meaning, result.coverage))
    evidence = np.where(measured, full @ columns, words @ columns)
    return np.round(1 / (1 + np.exp(-evidence)), 4)


def _excerpt(result: HistoryResult, position: int) -> Spoken:
    """Return a message, or of a long one the passage that matched and what follows it."""
    message = result.messages[position]
    text = text_of(message)
    if count(text) <= LONGEST_MESSAGE_TOKENS:
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


def _recalled(
    result: HistoryResult, scores: Floats, run: list[int], chosen: dict[int, Spoken], rank: int, floor: float
) -> Recalled:
    best = max(run, key=lambda position: (result.fused[position], position))
    meaning = float(result.meaning[best])
    around = f", with {len(run) - 1} around it" if len(run) > 1 else ""
    return Recalled(
        messages=tuple(chosen[position] for position in run),
        evidence=Evidence(
            score=float(scores[best]),
            meaning=None if np.isnan(meaning) else meaning,
            words=float(result.words[best]),
            rank=rank,
            floor=floor,
        ),
        reason=f"message {result.messages[best].seq} is relevant to the question{around}",
    )
