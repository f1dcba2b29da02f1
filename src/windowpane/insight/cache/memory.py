"""What a provider's cache should hold: which beginnings it has read, and until when it keeps them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from windowpane.insight.cache.blocks import CachedBlock, PrefixRule
from windowpane.text.shared_prefix import shared_prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The blocks of one call with the tokens of each, and the name of each beginning: of the first block, and so on."""

    blocks: tuple[CachedBlock, ...]
    tokens: tuple[float, ...]
    names: tuple[bytes, ...]

    @classmethod
    def of(cls, blocks: Sequence[CachedBlock], tokens: Sequence[float]) -> "Prompt":
        """Return a prompt."""
        names: list[bytes] = []
        name = b""
        for block in blocks:
            # A block says the same in another section, and is not the same to the provider.
            name = hashlib.sha256(name + f"{block.section}\n{block.text}".encode("utf-8", "surrogatepass")).digest()
            names.append(name)
        return cls(blocks=tuple(blocks), tokens=tuple(tokens), names=tuple(names))

    def kept(self, rule: PrefixRule) -> int:
        """Return how many blocks a provider can keep of it."""
        if not rule.marked:
            return len(self.blocks)
        return max(self.marks(rule), default=-1) + 1

    def marks(self, rule: PrefixRule) -> list[int]:
        """Return the places of the marks whose beginnings are long enough to be kept."""
        marked = [place for place, block in enumerate(self.blocks) if block.mark is not None]
        return [place for place in marked if sum(self.tokens[: place + 1]) >= rule.least_tokens]


@dataclass(slots=True)
class PrefixMemory:
    """The beginnings that one model has read."""

    rule: PrefixRule
    _until: dict[bytes, datetime] = field(default_factory=dict[bytes, datetime])
    _next: dict[bytes, dict[str, datetime]] = field(default_factory=dict[bytes, dict[str, datetime]])

    def readable(self, prompt: Prompt, at: datetime) -> float:
        """Return how many tokens of a prompt the provider has, before they are counted in steps."""
        found = self._marked(prompt, at) if self.rule.marked else self._longest(prompt, at)
        whole = sum(prompt.tokens[:found])
        if self.rule.marked or found >= len(prompt.blocks):
            return whole
        name = prompt.names[found - 1] if found else b""
        text = prompt.blocks[found].text
        begun = [other for other, until in self._next.get(name, {}).items() if at <= until]
        return whole + max((part_of(prompt.tokens[found], text, other) for other in begun), default=0.0)

    def read(self, prompt: Prompt, at: datetime) -> None:
        """Take in a prompt that the provider has read."""
        if self.rule.marked:
            for place in prompt.marks(self.rule):
                self._until[prompt.names[place]] = at + (prompt.blocks[place].mark or timedelta())
            return
        until = datetime.max.replace(tzinfo=at.tzinfo) if self.rule.ttl is None else at + self.rule.ttl
        before = b""
        for block, name in zip(prompt.blocks, prompt.names, strict=True):
            self._until[name] = until
            self._next.setdefault(before, {})[block.text] = until
            before = name

    def _longest(self, prompt: Prompt, at: datetime) -> int:
        return next((n for n, name in enumerate(prompt.names) if not self._has(name, at)), len(prompt.names))

    def _marked(self, prompt: Prompt, at: datetime) -> int:
        """Return how many blocks the longest entry has that one of the marks reaches."""
        for mark in reversed(prompt.marks(self.rule)):
            for place in range(mark, max(mark - self.rule.look_back, -1), -1):
                if self._has(prompt.names[place], at):
                    return place + 1
        return 0

    def _has(self, name: bytes, at: datetime) -> bool:
        return name in self._until and at <= self._until[name]


def part_of(tokens: float, text: str, other: str) -> float:
    """Return how many of a text's tokens it has in common with another text at the beginning."""
    return tokens * shared_prefix(text, other) / len(text) if text else 0.0
