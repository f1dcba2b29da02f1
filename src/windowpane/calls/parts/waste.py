"""What of a call is of no use: tools that were never called, texts that stand there twice, results that are old."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from windowpane.api.turns import SentPart
from windowpane.api.xray import OfferedToolUse, RepeatedText, StaleResult
from windowpane.calls.parts.body import AnsweredCall, CutPart

SHORTEST_REPEATED = 120
"""Texts with fewer characters may stand in a prompt more than once."""

Weighed = Sequence[tuple[CutPart, SentPart]]
"""The parts of a call, each with its weight."""


def tool_uses(last: Weighed, called: Iterable[str], session_tokens: Mapping[str, int]) -> tuple[OfferedToolUse, ...]:
    """Return the tools that a call offers, the largest first, and how often each is among the calls of the session."""
    counts = Counter(called)
    found = [
        OfferedToolUse(
            name=part.name,
            server=server_of(part.name),
            bytes=weighed.bytes,
            tokens=weighed.tokens,
            session_tokens=session_tokens.get(part.name, weighed.tokens),
            calls=counts[part.name] or counts[part.name.rpartition(".")[2]],
        )
        for part, weighed in last
        if part.kind == "tool"
    ]
    return tuple(sorted(found, key=lambda tool: (-tool.tokens, -tool.bytes, tool.name)))


def server_of(name: str) -> str:
    """Return the MCP server that a tool's name tells of: `mcp__clock__now` is one of `clock`."""
    pieces = name.split("__")
    return pieces[1] if len(pieces) >= 3 and pieces[0] == "mcp" else ""


def repeated_texts(last: Weighed) -> tuple[RepeatedText, ...]:
    """Return the texts that a call holds more than once, the dearest first. Old results are told apart."""
    copies: dict[str, list[tuple[CutPart, SentPart]]] = defaultdict(list)
    old = {part.start for part, _ in _old_results(last)}
    for part, weighed in last:
        text = part.text.strip()
        if len(text) >= SHORTEST_REPEATED and part.start not in old:
            copies[text].append((part, weighed))
    found = [
        RepeatedText(
            kind=own[0][0].kind,
            name=own[0][0].name,
            copies=len(own),
            tokens=sum(weighed.tokens for _, weighed in own[1:]),
        )
        for own in copies.values()
        if len(own) > 1
    ]
    return tuple(sorted(found, key=lambda text: (-text.tokens, text.name)))


def stale_results(last: Weighed) -> tuple[StaleResult, ...]:
    """Return what was read more than once, the dearest first."""
    reads: dict[str, dict[str, AnsweredCall]] = defaultdict(dict)
    tokens: Counter[str] = Counter()
    for part, _ in last:
        if part.answers is not None and part.answers.again:
            reads[part.answers.again][part.answers.id] = part.answers
    for part, weighed in _old_results(last):
        tokens[part.answers.again if part.answers else ""] += weighed.tokens
    found = [
        StaleResult(tool=first.tool, subject=first.subject, reads=len(calls), tokens=tokens[again])
        for again, calls in reads.items()
        if len(calls) > 1
        for first in list(calls.values())[:1]
    ]
    return tuple(sorted(found, key=lambda result: (-result.tokens, -result.reads, result.subject)))


def _old_results(last: Weighed) -> list[tuple[CutPart, SentPart]]:
    """Return the results that a later one of the same question follows."""
    answered = [(pair, pair[0].answers) for pair in last if pair[0].answers is not None]
    newest = {answers.again: answers.id for _, answers in answered if answers and answers.again}
    return [pair for pair, answers in answered if answers and answers.again and newest[answers.again] != answers.id]
