"""Where two consecutive prompts stop being the same, and what kind of change that is."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.api.comparison import BreakKind
from windowpane.api.turns import WireSpan
from windowpane.insight.cache.blocks import CachedBlock, PrefixRule, place_of
from windowpane.insight.cache.memory import Prompt, part_of
from windowpane.text.shared_prefix import shared_prefix

AROUND = 40
"""Characters of a text that are shown from the first difference on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstDifference:
    """The first block that is not as before: `before` in the earlier prompt, `after` in the later one.

    `compacted` tells that fewer messages, all of them others, stand in the place of those from there on.
    """

    kind: BreakKind
    before: CachedBlock
    after: CachedBlock
    compacted: bool = False

    @property
    def block(self) -> CachedBlock:
        """Return the block to blame: the one that is gone, or the one that is there now."""
        return self.before if self.kind == "removed" else self.after

    @property
    def texts(self) -> tuple[str, str]:
        """Return both texts from about the first difference on, in brief. What only entered or left has one."""
        if self.kind in ("added", "removed"):
            said = _brief(self.block.text, 0)
            return ("", said) if self.kind == "added" else (said, "")
        at = shared_prefix(self.before.text, self.after.text)
        return _brief(self.before.text, at), _brief(self.after.text, at)


def first_difference(before: Prompt, after: Prompt, rule: PrefixRule) -> FirstDifference | None:
    """Return the first difference within what the provider could keep of the earlier prompt, or None.

    A prompt that is only shorter or longer has none.
    """
    length = min(before.kept(rule), len(after.blocks))
    at = next((at for at in range(length) if before.names[at] != after.names[at]), None)
    if at is None:
        return None
    one, other = before.blocks[at], after.blocks[at]
    kind = _kind(one, other, before.blocks[at + 1 :], after.blocks[at + 1 :])
    compacted = _compacted(before.blocks[at:], after.blocks[at:])
    return FirstDifference(kind="edited" if compacted else kind, before=one, after=other, compacted=compacted)


def sent_again(before: Prompt, after: Prompt, rule: PrefixRule) -> float:
    """Return how many tokens of a prompt the provider could keep from the one before, wherever they stand now."""
    kept = before.kept(rule)
    at = next((at for at, pair in enumerate(zip(before.names, after.names, strict=False)) if pair[0] != pair[1]), None)
    if at is None or at >= kept:
        return sum(after.tokens[:kept])
    left = Counter((block.section, block.text) for block in before.blocks[at:kept])
    tokens = float(sum(after.tokens[:at]))
    for place in range(at, len(after.blocks)):
        block = after.blocks[place]
        if left[block.section, block.text]:
            left[block.section, block.text] -= 1
            tokens += after.tokens[place]
        elif place == at and block.section == before.blocks[at].section:
            tokens += _unchanged(after.tokens[at], block.text, before.blocks[at].text)
    return tokens


def owner_of(
    difference: FirstDifference, bodies: tuple[str, str], spans: tuple[Sequence[WireSpan], Sequence[WireSpan]]
) -> tuple[BreakKind, str] | None:
    """Return whose the first difference is, and what became of it, where the owners of both bodies are known.

    A block often holds several items, such as the rules of a system prompt. They are compared one by one.
    """
    one = _pieces(bodies[0], spans[0], difference.before)
    other = _pieces(bodies[1], spans[1], difference.after)
    if difference.kind in ("added", "removed", "reordered"):
        own = one if difference.kind == "removed" else other
        named = next((owner for owner, _ in own if owner), None)
        return (difference.kind, named) if named else None
    for (mine, text), (its, now) in zip(one, other, strict=False):
        if text == now:
            continue
        if mine == its or not mine or not its:
            return (difference.kind, its or mine) if its or mine else None
        if mine not in {owner for owner, _ in other}:
            return "removed", mine
        return ("added", its) if its not in {owner for owner, _ in one} else ("reordered", its)
    if len(one) != len(other):
        shorter = min(len(one), len(other))
        return ("removed", one[shorter][0]) if len(one) > shorter else ("added", other[shorter][0])
    return None


def _kind(
    one: CachedBlock, other: CachedBlock, before: Sequence[CachedBlock], after: Sequence[CachedBlock]
) -> BreakKind:
    if one.section != other.section:
        # Sections have their order: the one that stands earlier has something that the other prompt has not.
        order = ("setting", "tools", "system", "messages")
        return "removed" if order.index(one.section) < order.index(other.section) else "added"
    if (one.key and one.key == other.key) or (not one.key and _meaning(one.text) == _meaning(other.text)):
        return "reserialized" if _meaning(one.text) == _meaning(other.text) else "edited"
    stays = any(_same(one, block) for block in after)
    was_there = any(_same(other, block) for block in before)
    if stays and was_there:
        return "reordered"
    if stays:
        return "added"
    return "removed" if was_there or one.key else "edited"


def _compacted(before: Sequence[CachedBlock], after: Sequence[CachedBlock]) -> bool:
    if before[0].section != "messages" or not 0 < len(after) < len(before):
        return False
    return not {block.text for block in before} & {block.text for block in after}


def _same(one: CachedBlock, other: CachedBlock) -> bool:
    return one.section == other.section and (one.key == other.key if one.key else one.text == other.text)


def _meaning(text: str) -> str:
    """Return a block's text with its keys in one order."""
    start = text.find("{")
    if start < 0:
        return text
    try:
        return text[:start] + json.dumps(json.loads(text[start:]), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _unchanged(tokens: float, text: str, before: str) -> float:
    """Return how many tokens of a text are as before: at its beginning and at its end, or all in another order."""
    if _meaning(text) == _meaning(before):
        return tokens
    begin = shared_prefix(text, before)
    end = shared_prefix(text[begin:][::-1], before[begin:][::-1])
    return part_of(tokens, text, before) + (tokens * end / len(text) if text else 0.0)


def _pieces(body: str, spans: Sequence[WireSpan], block: CachedBlock) -> list[tuple[str, str]]:
    """Return the stretches of a block with their owners. What belongs to the protocol has none."""
    start, end = place_of(body, block)
    found: list[tuple[str, str]] = []
    for span in spans:
        low, high = max(span.start, start), min(span.end, end)
        if low < high and span.kind != "mapping" and span.owner != "cache_control":
            found.append((span.owner, body[low:high]))
    return found


def _brief(text: str, at: int) -> str:
    start = max(at - AROUND // 4, 0)
    said = " ".join(text[start : at + AROUND].split())
    return f"{'…' if start else ''}{said}{'…' if at + AROUND < len(text) else ''}"
