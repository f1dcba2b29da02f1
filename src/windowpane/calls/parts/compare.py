"""What is different between two calls, part by part, in the order in which a provider reads them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff

from windowpane.api.comparison import CallPartChange, Happened
from windowpane.api.turns import SentPart
from windowpane.calls.parts.body import CutPart
from windowpane.calls.parts.waste import Weighed

MOST_DIFF_LINES = 400
MOST_DIFF_CHARACTERS = 200_000
"""Longer texts are told to differ, and their lines are not compared."""

Pair = tuple[CutPart, SentPart]


def as_read(parts: Weighed) -> list[Pair]:
    """Return parts in the order in which the provider reads them: tools, system, messages, settings."""
    return sorted(parts, key=lambda pair: (pair[0].rank, pair[0].start))


def shared_tokens(before: Sequence[Pair], after: Sequence[Pair]) -> int:
    """Return the tokens of the parts that two calls begin with alike."""
    tokens = 0
    for one, other in zip(before, after, strict=False):
        if _told(one) != _told(other):
            break
        tokens += other[1].tokens
    return tokens


def part_changes(before: Sequence[Pair], after: Sequence[Pair]) -> Iterator[CallPartChange]:
    """Yield what became of the parts of a call in another one. Settings are compared as they are written."""
    matcher = SequenceMatcher(None, [_told(pair) for pair in before], [_told(pair) for pair in after], autojunk=False)
    for operation, low, high, its_low, its_high in matcher.get_opcodes():
        if operation != "equal":
            yield from _changes(before[low:high], after[its_low:its_high])


def kind_differences(before: Sequence[Pair], after: Sequence[Pair]) -> dict[str, int]:
    """Return how many tokens each kind takes more, or less. Kinds that take as much as before are not in it."""
    difference: Counter[str] = Counter()
    for sign, parts in ((-1, before), (1, after)):
        for part, weighed in parts:
            difference[part.kind] += sign * weighed.tokens
    return {kind: tokens for kind, tokens in difference.items() if tokens}


def _changes(before: Sequence[Pair], after: Sequence[Pair]) -> Iterator[CallPartChange]:
    """Yield the changes of a stretch that is different: parts of one kind and name belong together."""
    left = list(before)
    for other in after:
        one = next((pair for pair in left if pair[0].name and _named(pair) == _named(other)), None)
        if one is None:
            yield _change(other, "entered", other[1].tokens, "", other[0].text)
            continue
        left.remove(one)
        yield _change(other, "changed", other[1].tokens - one[1].tokens, one[0].text, other[0].text)
    for one in left:
        yield _change(one, "left", -one[1].tokens, one[0].text, "")


def _change(pair: Pair, happened: Happened, tokens: int, before: str, after: str) -> CallPartChange:
    part = pair[0]
    return CallPartChange(
        kind=part.kind, name=part.name, happened=happened, tokens=tokens, diff=_difference(before, after)
    )


def _difference(before: str, after: str) -> str:
    if before == after:
        return ""
    if len(before) + len(after) > MOST_DIFF_CHARACTERS:
        return f"{len(before):,} characters before, {len(after):,} after: too long to compare"
    lines = list(unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2))
    if len(lines) > MOST_DIFF_LINES:
        lines = [*lines[:MOST_DIFF_LINES], f"… {len(lines) - MOST_DIFF_LINES} more lines"]
    return "\n".join(lines)


def _named(pair: Pair) -> tuple[str, str]:
    return pair[0].kind, pair[0].name


def _told(pair: Pair) -> tuple[str, str, str]:
    return pair[0].kind, pair[0].name, pair[0].text
