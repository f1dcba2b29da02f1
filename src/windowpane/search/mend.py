"""Read a mistyped word as the one that was meant.

A word is mistyped when neither the items nor the model know it, in any of its forms, and one that they know is a single
edit away: a letter too many, one too few, a wrong one, or two in the wrong order. A word of the items is
preferred, then the most usual one. Names, code, addresses and pasted texts are left as they are.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import ascii_lowercase

from windowpane.search.words import words

SHORTEST = 4
"""Shorter words are one edit away from too many others."""

SHORTEST_OF_MODEL = 6
"""The same for words that the items do not have: there are many more of those."""

LONGEST_TEXT = 4_000
LONGEST_WORD = 40
"""Longer texts and words are treated as pasted data and left as they are."""

# Not beside what makes an address, a path, a call or a name of code.
_WORD = re.compile(r"(?<![\w@./\\:#$-])[A-Za-z]+(?![\w@/\\(:=-]|\.\w|['’]\w{3,})")
_PREFIXES = ("re", "un")
_ENDINGS = ("s", "es", "ed", "er", "ers", "ing", "ings")
_LETTER = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Mended:
    """A text as it is read, and the words that are read differently from how they were written."""

    text: str
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def note(self) -> str:
        """Return the changes for people; empty when there are none."""
        return ", ".join(f"'{written}' is read as '{meant}'" for written, meant in self.changes)


def mend(text: str, items: Mapping[str, int], model: Mapping[str, int]) -> Mended:
    """Return a text with its mistyped words mended.

    `items` are the words of the items with how often they occur, `model` those of the model with their rank, the most
    usual first. Without the words of a model nothing is mended: they tell what is a word at all.
    """
    if not model or len(text) > LONGEST_TEXT:
        return Mended(text)
    changes: dict[str, str] = {}
    first = _LETTER.search(text)

    def read(found: re.Match[str]) -> str:
        word = found[0]
        # A capital in mid-sentence begins a name.
        plain = word.islower() or (word[1:].islower() and _starts_sentence(text, found, first))
        meant = _meant(word.lower(), items, model) if plain and SHORTEST <= len(word) <= LONGEST_WORD else None
        if meant is None:
            return word
        meant = meant.capitalize() if word[0].isupper() else meant
        changes[word] = meant
        return meant

    return Mended(_WORD.sub(read, text), tuple(changes.items()))


def _starts_sentence(text: str, word: re.Match[str], first: re.Match[str] | None) -> bool:
    """Tell whether a word stands at the start of a text or a line, or behind a stop and a space."""
    if first is None or word.start() <= first.start():
        return True
    before = text[: word.start()]
    said = before.rstrip()
    space = before[len(said) :]
    return bool(space) and (said[-1] in ".!?:;" or "\n" in space[:-1])


def _meant(word: str, items: Mapping[str, int], model: Mapping[str, int]) -> str | None:
    """Return the word that was meant by a mistyped one; None where it is none, or nothing is near."""
    # Nearly every word is one that the model knows: nothing else is looked at then.
    if word in model or any(form in model or form in items for form in (word, *words(word), *_formed_from(word))):
        return None
    near = {other for other in _one_edit_away(word) if len(other) >= SHORTEST - 1}
    of_items, of_model = near & items.keys(), near & model.keys()
    if any(words(other) == words(word) for other in of_items | of_model):
        # Another form of a known word is no mistake.
        return None
    if of_items:
        return min(of_items, key=lambda other: (-items[other], other))
    if len(word) < SHORTEST_OF_MODEL:
        return None
    return min(of_model, key=lambda other: (model[other], other), default=None)


def _formed_from(word: str) -> Iterator[str]:
    """Return the words that this one may be made of: "size" of "resizing", "factor" of "refactor"."""
    for prefix in ("", *_PREFIXES):
        whole = word.removeprefix(prefix)
        for ending in ("", *_ENDINGS):
            base = whole.removesuffix(ending)
            if len(base) >= SHORTEST - 1 and prefix + base + ending == word:
                yield from (base, base + "e") if ending else (base,)


def _one_edit_away(word: str) -> Iterator[str]:
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        if after:
            yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        for letter in ascii_lowercase:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]
