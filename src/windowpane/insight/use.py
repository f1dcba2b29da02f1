"""Tell which items of a request the answer made use of.

The rules are plain, so that they can be checked by hand, and look only at what was recorded:

- A tool was used when it was called.
- A rule or reference was **cited** when the answer names it, **quoted** when five words in a row come from it, and
  **drawn upon** when the answer says enough that stands in it and nowhere else in the request. Rare words say more than
  common ones, two side by side more than two apart, and an identifier, an address or a long number is enough alone.

- A rule or reference of which no such words are found was **probably** used when the answer says something very near to
  it (`insight/probable.py`). Where that cannot be measured, its use is unknown.

What an item only does to the form of an answer ("be brief") leaves no such trace. That none was found therefore never
means "not used"; only a tool that was not called was not used.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from windowpane.api.turns import ItemUse
from windowpane.context.ids import BlobHash
from windowpane.context.items import ItemRef, reference_ref
from windowpane.context.request import PartKind, RequestMessage
from windowpane.insight.past import PastTurn
from windowpane.search.words import STOP_WORDS, words
from windowpane.text.tokens import rarity

QUOTE_WORDS = 5
"""So many words in a row are a quotation."""

ENOUGH = 3.0
"""Evidence above this is not a coincidence."""

MOST_WORTH = 1.5
"""What a word is worth at most, unless it is an identifier, an address or a long number: those are enough alone."""

PER_DOUBLING = 0.33
"""How much more a word is worth that stands twice as far down in the vocabulary."""

COMMON_RANK = 2000
"""Words up to here in the vocabulary are worth nothing."""

PER_PAIR = 1.3
"""What it is worth that two words stand side by side in both."""

_HOLDS_ITEMS: tuple[PartKind, ...] = ("rules", "references", "selected", "sources")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+(?:['’][^\W\d_]+)?(?:[._/:@#-]+[^\W_]+)*")
_APART = r"\"'`*\[\]()“”„‘’«»"
_CODED = re.compile(r"[a-z]-?\d|\d-?[a-z]|[._/:@#]")

Sign = str | tuple[str, ...]
"""Something that an answer and a text can have in common: a word's stem, a run of words, or a pair of stems."""


def use(past: PastTurn) -> tuple[ItemUse, ...]:
    """Return for every item that the model was given whether the answer made use of it, in the order of the record.

    What stands there since an earlier turn comes last.
    """
    sent = [*(item for item in past.context.items if item.sent), *past.context.standing]
    called = {call.ref: call.offered_name for step in past.steps for call in step.tool_calls if call.ref is not None}
    texts = texts_sent(past)
    around = [message.content for message in past.request.messages if message.part not in _HOLDS_ITEMS]
    around += [f"{tool.description} {json.dumps(tool.parameters)}" for tool in past.request.tools]
    around += [result.content for step in past.steps for result in step.results]
    judged = {found.ref: found for found in uses(texts, _written(past), around, spoken=reply_text(past))}
    return tuple(
        _of_tool(item.ref, called.get(item.ref))
        if item.type == "tool"
        else judged.get(item.ref) or ItemUse(ref=item.ref, used=False)
        for item in sent
    )


def texts_sent(past: PastTurn) -> dict[ItemRef, str]:
    """Return the texts of the rules and references that a turn's model was given."""
    sent = (*(item for item in past.context.items if item.sent), *past.context.standing)
    return {item.ref: _text_of(past, item.hash) for item in sent if item.type != "tool" and item.hash is not None}


def reply_text(past: PastTurn) -> str:
    """Return what the model said to the user, in all steps of a turn."""
    return "\n".join(step.text for step in past.steps)


def page_used(past: PastTurn, page: RequestMessage) -> bool:
    """Tell whether the answer made use of a fetched page, by the rules for items; its address counts as its name."""
    address = page.name.partition(" ")[2]
    if address and address in reply_text(past):
        return True
    around = [message.content for message in past.request.messages if message != page]
    (found,) = uses({reference_ref("page"): page.content}, _written(past), around, spoken="")
    return found.used


def uses(
    texts: Mapping[ItemRef, str], answer: str, around: Sequence[str], *, spoken: str | None = None
) -> tuple[ItemUse, ...]:
    """Return for each text whether an answer made use of it, given everything else that the model was shown.

    `spoken` is the part of the answer in which naming an item counts; unless given, all of it.
    """
    said = _Signs.of(answer)
    shared = {ref: said.all & _Signs.of(text).all for ref, text in texts.items()}
    times = Counter(sign for found in shared.values() for sign in found)
    for text in around:
        times.update(said.all & _Signs.of(text).all)
    named = answer if spoken is None else spoken
    return tuple(
        _verdict(ref, said, {sign for sign in found if times[sign] == 1}, named, [*around, *_others(texts, ref)])
        for ref, found in shared.items()
    )


def used_among(texts: Mapping[ItemRef, str], answer: str, around: Sequence[str]) -> frozenset[ItemRef]:
    """Return which texts an answer made use of, given everything else that the model was shown."""
    return frozenset(found.ref for found in uses(texts, answer, around) if found.used)


def _others(texts: Mapping[ItemRef, str], ref: ItemRef) -> list[str]:
    return [text for other, text in texts.items() if other != ref]


def _verdict(ref: ItemRef, said: "_Signs", only: set[Sign], spoken: str, elsewhere: Sequence[str]) -> ItemUse:
    """Return whether a text was used, from the signs that it shares with the answer and nothing else does."""
    cited = _cited(ref.name, spoken, elsewhere)
    if cited:
        return ItemUse(ref=ref, used=True, how="cited", trace=cited, verdict="used")
    quoted = next((run for run in said.runs if run in only), None)
    if quoted:
        return ItemUse(ref=ref, used=True, how="quoted", trace=" ".join(quoted), verdict="used")
    single = [token for stem, token in said.stems.items() if stem in only]
    pairs = sum(pair in only for pair in said.pairs)
    if sum(map(worth, single)) + PER_PAIR * pairs < ENOUGH:
        return ItemUse(ref=ref, used=False)
    return ItemUse(ref=ref, used=True, how="drawn_upon", trace=", ".join(single), verdict="used")


def _cited(name: str, spoken: str, elsewhere: Sequence[str]) -> str:
    """Return an item's name as the answer gives it, where it was not named before.

    A name that is plain words, or reads like them (`heat-pump`), may be just those words; it counts only when it is
    written as a name: with its `@` or `.md`, or set apart by quotes, backticks, stars or brackets.
    """
    plain = name.replace("-", " ").replace("_", " ")
    ways = [rf"@{re.escape(name)}(?![\w-])", rf"{re.escape(name)}\.md(?!\w)"]
    ways += [rf"(?<=[{_APART}]){re.escape(spelling)}(?=[{_APART}])" for spelling in dict.fromkeys((name, plain))]
    if not all(part.isalpha() for part in plain.split()):
        ways.append(re.escape(name) + r"(?![\w-])")
    for way in ways:
        marked = re.compile(rf"(?<![\w/-]){way}", re.IGNORECASE)
        found = marked.search(spoken)
        if found and not any(marked.search(text) for text in elsewhere):
            return found.group()
    return ""


def _of_tool(ref: ItemRef, name: str | None) -> ItemUse:
    if name is None:
        return ItemUse(ref=ref, used=False, verdict="not_called")
    return ItemUse(ref=ref, used=True, how="called", trace=name, verdict="used")


def _text_of(past: PastTurn, name: BlobHash) -> str:
    """Return what an item said, as it stood in the prompt."""
    body = past.texts.get(name)
    return str(json.loads(body)["text"]) if body else ""


def _written(past: PastTurn) -> str:
    """Return everything that the model wrote: to the user, and into tool calls."""
    return "\n".join((reply_text(past), *(call.arguments for step in past.steps for call in step.tool_calls)))


@dataclass(frozen=True)
class _Signs:
    """What a text can be recognised by: telling words by their stem, runs of words, pairs of neighbouring stems."""

    stems: Mapping[str, str]
    runs: tuple[tuple[str, ...], ...]
    pairs: frozenset[tuple[str, ...]]

    @staticmethod
    @lru_cache(maxsize=64)
    def of(text: str) -> "_Signs":
        """Return a text's signs. Texts come again from turn to turn."""
        tokens = [token.casefold() for token in _TOKEN.findall(text)]
        telling = [(stem, token) for token in tokens if (stem := _stem(token)) and worth(token) > 0]
        runs = (tuple(tokens[start : start + QUOTE_WORDS]) for start in range(len(tokens) - QUOTE_WORDS + 1))
        return _Signs(
            dict(telling),
            tuple(run for run in runs if sum(worth(token) > 0 for token in run) >= 2),
            frozenset((first, second) for (first, _), (second, _) in pairwise(telling) if first != second),
        )

    @cached_property
    def all(self) -> frozenset[Sign]:
        """Return every sign."""
        return frozenset((*self.stems, *self.runs, *self.pairs))


@lru_cache(maxsize=65_536)
def worth(token: str) -> float:
    """Return how much it says that a word is in two texts: nothing for a common one, enough alone for an identifier."""
    if token in STOP_WORDS or (len(token) < 3 and not token.isdigit()):
        return 0.0
    digits = sum(character.isdigit() for character in token)
    if digits >= 4 or (len(token) > 3 and _CODED.search(token)):
        return ENOUGH
    if digits:
        return (0.4, 0.8, MOST_WORTH)[min(digits, 3) - 1]
    parts = [part for part in re.split(r"[-'’]", token) if part]
    worths = [max(PER_DOUBLING * math.log2(rarity(part) / COMMON_RANK), 0.0) for part in parts]
    # A compound is as good as its parts side by side.
    return sum(min(each, MOST_WORTH) for each in worths) + PER_PAIR * (len(parts) - 1)


def _stem(token: str) -> str:
    return " ".join(words(token)) or token
