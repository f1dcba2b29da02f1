"""What a person looks for, read from one line: words, and what a request had."""

import re
from dataclasses import dataclass

from windowpane.insight.finding.words import fact, terms_asked, words_of
from windowpane.stores.finding import WantedTexts

_NAME = r"(?:\"([^\"]+)\"|(\S+))"
_LEFT_OUT = re.compile(rf"(?<!\S)left-out:{_NAME}", re.IGNORECASE)
_LEFT_OUT_SAID = re.compile(r"(?:turns )?where (.{1,200}?) was left out", re.IGNORECASE)
_SENT = re.compile(rf"(?<!\S)sent:{_NAME}", re.IGNORECASE)
_SENT_SAID = re.compile(r"(?:turns )?where (.{1,200}?) was sent", re.IGNORECASE)
_AGENT = re.compile(rf"(?<!\S)agent:{_NAME}", re.IGNORECASE)
_LENGTH = re.compile(r"(?<!\S)(over|under):? ?(\d[\d,]*(?:\.\d+)?)(k?)(?: tokens?)?(?![^\s,;])", re.IGNORECASE)
_DEGRADED = re.compile(r"(?<!\S)is:degraded(?!\S)|^\s*degraded\s*$", re.IGNORECASE)
_LONGEST_TOKENS = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class FindQuery:
    """A line as it was understood: `words` that are to be there, and conditions on the request of a turn.

    `understood` says the conditions in plain words.
    """

    words: tuple[str, ...]
    wanted: WantedTexts
    understood: tuple[str, ...] = ()

    @property
    def has_conditions(self) -> bool:
        """Tell whether more is asked than words."""
        return bool(self.understood)


def read_query(line: str, *, owner: str | None, agent: str | None = None) -> FindQuery:
    """Return what a line asks for."""
    facts: set[str] = set()
    understood: list[str] = []
    least: int | None = None
    most: int | None = None

    def take(pattern: re.Pattern[str]) -> list[re.Match[str]]:
        nonlocal line
        found = list(pattern.finditer(line))
        line = pattern.sub(" ", line)
        return found

    for pattern in (_LEFT_OUT, _LEFT_OUT_SAID):
        for match in take(pattern):
            name = _named(match)
            facts.add(fact("left_out", name))
            understood.append(f"{name} was left out")
    for pattern in (_SENT, _SENT_SAID):
        for match in take(pattern):
            name = _named(match)
            facts.add(fact("sent", name))
            understood.append(f"{name} was sent")
    for match in take(_AGENT):
        agent = _named(match)
        understood.append(f"the agent is {agent}")
    for match in take(_LENGTH):
        tokens = min(round(float(match[2].replace(",", "")) * (1000 if match[3] else 1)), _LONGEST_TOKENS)
        understood.append(f"the request has {match[1].lower()} {tokens:,} tokens")
        if match[1].lower() == "over":
            least = tokens + 1
        else:
            most = max(tokens - 1, 0)
    if take(_DEGRADED):
        facts.add(fact("degraded"))
        understood.append("the selection was degraded")
    if facts or least is not None or most is not None:
        # Only turns with a request have facts and a length.
        facts.add(fact("request"))
    words = tuple(dict.fromkeys(words_of(line)))
    wanted = WantedTexts(
        terms=terms_asked(words) | facts, owner=owner, agent=agent, least_tokens=least, most_tokens=most
    )
    return FindQuery(words=words, wanted=wanted, understood=tuple(understood))


def _named(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).strip()
