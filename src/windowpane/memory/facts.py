"""Find the hard facts in what was said, and carry them on word for word.

A fact is a stretch of one line of a message, exactly as it was written: a short clause around a path, an address, an
amount, a date, an identifier, a command, a name or a decision. Facts are only ever kept or dropped. When there are
too many, those that say least go first; when a later one says something else about the same subject ("the port is
8080", "the port is now 9090"), the earlier one goes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from windowpane.text.tokens import count

LONGEST_FACT = 140
"""A clause longer than this is reduced to what stands around its hard parts."""

LEAD_CHARACTERS = 50
"""How much of what stands before a hard part is kept with it then."""

MOST_PER_MESSAGE = 12
LONGEST_TEXT = 20_000
LONGEST_LINE = 2_000
"""Longer texts are treated as pasted data and skipped."""


@dataclass(frozen=True, slots=True)
class FactLimits:
    """How much of a summary facts may take."""

    most: int = 60
    most_tokens: int = 800


FACT_LIMITS = FactLimits()


def facts(text: str, most: int = MOST_PER_MESSAGE) -> tuple[str, ...]:
    """Return the hard facts of one message in the order in which they stand there, at most so many."""
    found = list(dict.fromkeys(fact for line in _lines(text) for fact in _line_facts(line)))
    return tuple(_most_telling(_without_repeats(_most_telling(found, 10 * most)), most))


def merge_facts(before: Sequence[str], new: Sequence[str], limits: FactLimits = FACT_LIMITS) -> tuple[str, ...]:
    """Return the facts to carry on: those from before, then the new ones, each exactly as it was given.

    A fact that another one contains goes, and so does one whose subject a later one speaks of again. What is too
    much is dropped, least telling first, older first.
    """
    kept = _most_telling(_current(_without_repeats(list(dict.fromkeys((*before, *new))))), limits.most)
    room = limits.most_tokens
    taken: set[int] = set()
    for index in sorted(range(len(kept)), key=lambda index: (-weight(kept[index]), -index)):
        tokens = count(kept[index]) + 1
        if tokens <= room:
            room -= tokens
            taken.add(index)
    return tuple(kept[index] for index in sorted(taken))


def weight(fact: str) -> float:
    """Return how much a fact tells: what it names, and that it decides something; long ones tell less per word."""
    kinds = {kind for kind, _, _ in _hard_parts(fact)}
    decided = 4.0 if _DECISION.search(fact) else 0.0
    return decided + sum(_WEIGHTS[kind] for kind in kinds) + (0.5 if subject(fact) else 0.0) - len(fact) / 200


def subject(fact: str) -> str:
    """Return what a fact is about when it says so plainly ("the port is …", "port: …"), else nothing."""
    stated = _STATED.match(fact)
    if stated is None:
        return ""
    words = [word for word in stated["subject"].lower().split() if word not in _ARTICLES]
    vague = not words or not _VAGUE.isdisjoint(words) or len(words) > _LONGEST_SUBJECT_WORDS
    return "" if vague or not _hard_parts(stated["value"]) else " ".join(words)


def hard_parts(fact: str) -> tuple[str, ...]:
    """Return what of a fact can be checked letter by letter."""
    return tuple(part for _, part in hard_kinds(fact))


def hard_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Return what of a text can be checked letter by letter, each with its kind, such as `date`."""
    return tuple((kind, text[start:end]) for kind, start, end in _hard_parts(text))


# Where facts stand.

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_LIST_MARK = re.compile(r"^\s*(?:[-*•+]|\d+[.)]|>|#{1,6})\s+")
_CLAUSE_END = re.compile(
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\b[DM]r\.)(?<!\bMrs\.)(?<!\bNo\.)(?<=[.!?;])[\"')\]]*\s+|\s+[–—]\s+"
)
_FILLER = re.compile(
    r"(?:(?:ok(?:ay)?|so|and|but|also|well|yes|yeah|no|sure|great|please|then|now|right|oh|hi|hello|hey|thanks"
    r"|thank you|fyi|note|btw|by the way)\b[\s,:!.–—-]*)+",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s")
_TRIMMED = " \t\r*_\"'“”‘’,;:.!|"


def _lines(text: str) -> Iterator[str]:
    """Yield the lines worth reading: prose, and of fenced code only the commands."""
    fenced = False
    for line in map(_cut(LONGEST_LINE), _cut(LONGEST_TEXT)(text).splitlines()):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced or _command(line):
            yield line


def _cut(longest: int) -> Callable[[str], str]:
    """Cut long texts between two words: half a word would be no fact."""

    def cut(text: str) -> str:
        if len(text) <= longest:
            return text
        spaces = list(_SPACE.finditer(text, 0, longest))
        return text[: spaces[-1].start()] if spaces else ""

    return cut


def _line_facts(line: str) -> Iterator[str]:
    if command := _command(line):
        yield command
        return
    line = _LIST_MARK.sub("", line)
    for clause in _clauses(line):
        yield from _clause_facts(clause)


def _clauses(line: str) -> Iterator[str]:
    """Split a line at the ends of sentences, but not inside of quoted code."""
    quoted = [match.span() for match in _CODE.finditer(line)]
    start = 0
    for match in _CLAUSE_END.finditer(line):
        if not any(left < match.start() < right for left, right in quoted):
            yield line[start : match.end()]
            start = match.end()
    yield line[start:]


def _clause_facts(clause: str) -> Iterator[str]:
    asks = clause.rstrip(" \"')*_").endswith("?")
    clause = clause.strip(_TRIMMED)
    filler = _FILLER.match(clause)
    clause = clause[filler.end() :] if filler else clause
    clause = _balanced(clause.strip(_TRIMMED))
    parts = _hard_parts(clause)
    decides = not asks and _DECISION.search(clause) is not None
    if not clause or not (parts or decides):
        return
    if asks:
        # A question states nothing, but what it names may matter.
        yield from (clause[start:end] for kind, start, end in parts if kind in _NAMED_IN_QUESTIONS)
    elif {kind for kind, _, _ in parts} == {"name"} and not decides and len(clause.split()) < _FEWEST_WORDS:
        return
    elif len(clause) <= LONGEST_FACT:
        yield clause
    elif not parts:
        yield clause[: clause.rfind(" ", 0, LONGEST_FACT)].strip(_TRIMMED) or clause[:LONGEST_FACT]
    else:
        yield from (fact for fact in _around(clause, parts) if fact)


def _around(clause: str, parts: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    """Yield the hard parts of a long clause, those that stand close together in one piece, each with its lead."""
    left, right = -1, -1
    for kind, start, end in parts:
        if kind == "name" and len(parts) > 1:
            continue
        if left >= 0 and end - left <= LONGEST_FACT - LEAD_CHARACTERS:
            right = max(right, end)
            continue
        if left >= 0:
            yield _with_lead(clause, left, right)
        left, right = start, end
    if left >= 0:
        yield _with_lead(clause, left, right)


def _with_lead(clause: str, start: int, end: int) -> str:
    lead = max(0, start - LEAD_CHARACTERS)
    if lead:
        space = clause.find(" ", lead, start)
        lead = space + 1 if space >= 0 else start
    return _balanced(clause[lead:end].strip(_TRIMMED))


def _balanced(text: str) -> str:
    """Return a text without a lone bracket or back-tick at one of its ends."""
    for opening, closing in ("()", "[]", "``"):
        odd = text.count("`") % 2 == 1 if opening == "`" else text.count(opening) != text.count(closing)
        if odd and text.startswith(opening):
            text = text[1:]
        elif odd and text.endswith(closing):
            text = text[:-1]
    return text


# What makes a fact hard.

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_UNIT = (
    r"(?:%|°[CF]?|[kKMGTP]i?[Bb](?:/s|ps)?\b|(?:bytes?|bits?|tokens?|char(?:acter)?s?|lines?|rows?|records?|messages?|files?"
    r"|requests?|users?|people|persons?|items?|pages?|words?|times|x|ms|µs|ns|s|sec(?:ond)?s?|min(?:ute)?s?|h|hrs?|hours?"
    r"|days?|weeks?|months?|years?|[kcm]?m|miles?|km/h|mph|[km]?g|lbs?|pounds?|oz|m?l|lit(?:re|er)s?|euros?|dollars?|cents?"
    r"|EUR|USD|GBP|CHF|JPY|px|pt|dpi|fps|[kMG]?Hz|[kM]?W|kWh|[mk]?V|m?A|cores?|threads?|workers?|replicas?|nodes?|instances?"
    r"|degrees?|points?|per ?cent|thousand|million|billion)\b(?:/\w+| per \w+)?)"
)
_NUMBER = r"(?<![\w.])[-+]?\d+(?:[.,']\d{3})*(?:[.,]\d+)?"
_CODE = re.compile(r"`[^`\n]+`")
_KINDS: dict[str, re.Pattern[str]] = {
    "code": _CODE,
    "url": re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]]", re.IGNORECASE),
    "email": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "id": re.compile(
        r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"
        r"|\b[A-Z][A-Z0-9]{1,9}-\d+\b|(?<!\w)#\d+\b|\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9]{6,}\b",
    ),
    "path": re.compile(
        r"(?<![\w/.:])(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+*-]+)*/?|\b[A-Za-z]:\\[\w\\.-]+"
        r"|(?<![\w/.@])[\w-]+(?:/[\w.-]+)*\.(?!com\b|org\b|net\b)[a-zA-Z][a-zA-Z0-9]{0,5}\b(?!\()|(?<![\w/])\w[\w.-]*(?:/[\w.-]+){2,}"
    ),
    "host": re.compile(
        r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|local|internal)\b(?::\d+)?|\blocalhost:\d+\b"
    ),
    "version": re.compile(
        r"\bv?\d+\.\d+(?:\.\d+)+(?:[-+][\w.]+)?\b|\bv\d+(?:\.\d+)?\b|\b(?:version|release|python|node|java)\s+\d+(?:\.\d+)*",
        re.IGNORECASE,
    ),
    "port": re.compile(r"\bports?\s+(?:is\s+|now\s+)*\d{2,5}\b|(?<=\w):\d{2,5}\b", re.IGNORECASE),
    "amount": re.compile(rf"[$€£¥]\s?\d[\d.,']*\d*(?:\s?[kKmMbB]\b)?|{_NUMBER}\s?(?:€|£|¥)"),
    "date": re.compile(
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}})?)?|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b"
        rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b(?:,? \d{{4}})?"
        rf"|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
        rf"|\b{_MONTH} \d{{4}}\b|\b(?:19|20)\d\d\b|\bQ[1-4]\b"
    ),
    "time": re.compile(
        r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b)?|\b\d{1,2}\s?[ap]m\b"
        r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b(?:tomorrow|tonight|next (?:week|month|year))\b",
        re.IGNORECASE,
    ),
    "quantity": re.compile(rf"{_NUMBER}[\s-]?{_UNIT}"),
    "setting": re.compile(r"\b[A-Za-z_][\w.-]*\s?=\s?[^\s,;]+|(?<!\w)--?[a-z][\w-]+(?:=\S+)?"),
    "identifier": re.compile(
        r"\b[a-z]+\d*(?:[A-Z][a-z0-9]+)+\b|\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\b|\b\w+(?:_\w+)+\b|\b[A-Za-z_][\w.]*\(\)"
    ),
    "number": re.compile(r"(?<![\w.,:/-])\d{2,}(?![\w:/]|[.,]\d)"),
    "name": re.compile(
        r"(?<=[a-z0-9,] )[A-Z][a-zé'’-]+(?: (?:(?:de|van|von|of|the|la) )?[A-Z][\w'’-]+)*"
        r"|\b[A-Z][a-zé]+(?: [A-Z][a-zé'’-]+)+"
    ),
}
_WEIGHTS = {
    "code": 3.0,
    "url": 3.0,
    "email": 3.0,
    "id": 3.0,
    "path": 3.0,
    "host": 3.0,
    "version": 2.5,
    "port": 3.0,
    "amount": 2.5,
    "date": 2.0,
    "time": 1.5,
    "quantity": 2.0,
    "setting": 2.0,
    "identifier": 2.0,
    "number": 1.0,
    "name": 1.0,
}
_NAMED_IN_QUESTIONS = frozenset({"code", "url", "email", "id", "path", "host", "identifier"})
_NOT_NAMES = frozenset({"i", "i'm", "i'll", "i'd", "i've", "ok", "okay"})
_FEWEST_WORDS = 4
_DECISION = re.compile(
    r"""\b(?:
      (?:we|i|they|you|team)\b.{0,24}\b(?:decided|agreed|chose|picked|settled\ on|committed\ to|opted)
    | (?:let'?s|let\ us|we'?ll|we\ will|i'?ll|going\ to|we\ should)
      \ (?:go\ with|use|stick\ (?:with|to)|keep|switch\ to|avoid)
    | do(?:n't|\ not)\ (?:use|touch|change|deploy|delete|commit|push|call|send|share|store)
    | going\ with|instead\ of|decision|prefers?|preferred|never|must(?:n't)?|always\ use
    | deadline|due\ (?:by|on)|requirement|not\ allowed|forbidden|allergic|remember\ that
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_STATED = re.compile(
    r"(?P<subject>[^\d:=,;`]{2,60}?)(?:\s+(?:is|are|was|were|will be|has been|runs? on|lives? (?:in|at)"
    r"|listens? on|changed to|moved to)(?:\s+(?:now|actually|currently|changed to|moved to|set to|at|on|in))*\b"
    r"|\s*[:=])\s*(?P<value>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_SUBJECT_WORDS = 6
_ARTICLES = frozenset({"the", "a", "an", "our", "now", "new", "actually", "correction"})
_VAGUE = frozenset(
    re.findall(
        r"\S+",
        """it this that these those he she they there here which what who i we you one everything something nothing
        all some and but because since if when while know note update example answer question step tip warning
        important todo reminder result option then first second next also""",
    )
)
_CLEAR_COMMANDS = frozenset(
    re.findall(
        r"\S+",
        """sudo git docker docker-compose podman kubectl helm npm npx pnpm yarn pip pipx uv uvx poetry pytest cargo curl
        wget ssh scp rsync mkdir chmod chown systemctl journalctl apt apt-get brew psql mysql sqlite3 redis-cli
        terraform gcloud""",
    )
)
_COMMAND_WORDS = frozenset(
    re.findall(
        r"\S+",
        """python python3 node make go java cd ls cp mv rm cat grep sed awk find tar aws export bash sh""",
    )
)
_OPTION = re.compile(r"\s--?\w|\s[\w.~-]*/|=")


def _command(line: str) -> str:
    """Return the command that a line consists of, or nothing."""
    line = line.strip()
    if line.startswith("$ "):
        return line[2:].strip()
    first, _, rest = line.partition(" ")
    if not rest or line.endswith((".", "?", "!", ":", ",")) or len(line) > LONGEST_FACT:
        return ""
    clear = first in _CLEAR_COMMANDS and len(rest.split()) <= _FEWEST_WORDS
    return line if clear or (first in _CLEAR_COMMANDS | _COMMAND_WORDS and _OPTION.search(line)) else ""


@lru_cache(maxsize=4096)
def _hard_parts(text: str) -> tuple[tuple[str, int, int], ...]:
    """Return kind, start and end of everything hard in a text; what an earlier kind took is not taken again."""
    if _command(text):
        return (("code", 0, len(text)),)
    taken = bytearray(len(text))
    parts: list[tuple[str, int, int]] = []
    for kind, pattern in _KINDS.items():
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(taken[start:end]) or (kind == "name" and match[0].lower() in _NOT_NAMES):
                continue
            taken[start:end] = b"\x01" * (end - start)
            parts.append((kind, start, end))
    return tuple(sorted(parts, key=lambda part: part[1]))


# What is kept.


def _without_repeats(found: Sequence[str]) -> list[str]:
    """Drop a fact that is the same as a later one but for case and space, and one that stands inside of another."""
    plain = [" ".join(fact.lower().split()) for fact in found]
    last = {text: index for index, text in enumerate(plain)}
    return [
        fact
        for index, fact in enumerate(found)
        if plain[index]
        and last[plain[index]] == index
        and not any(len(other) > len(plain[index]) and _stands_in(plain[index], other) for other in last)
    ]


def _stands_in(part: str, whole: str) -> bool:
    start = whole.find(part)
    while start >= 0:
        end = start + len(part)
        before, after = whole[start - 1 : start], whole[end : end + 2]
        joined_after = (
            after[:1].isalnum() or after[:1] in ("_", "/", "-") or (after[:1] in (".", ":") and after[1:].isalnum())
        )
        if not (before.isalnum() or before in ("_", "/", "-", ".")) and not joined_after:
            return True
        start = whole.find(part, start + 1)
    return False


def _current(found: Sequence[str]) -> list[str]:
    """Drop a fact when a later one speaks of the same subject."""
    subjects = [subject(fact) for fact in found]
    latest = {about: index for index, about in enumerate(subjects)}
    return [fact for index, fact in enumerate(found) if not subjects[index] or latest[subjects[index]] == index]


def _most_telling(found: Sequence[str], most: int) -> list[str]:
    """Return so many facts at most, in their order; of two that tell as much the later one stays."""
    if len(found) <= most:
        return list(found)
    best = sorted(range(len(found)), key=lambda index: (-weight(found[index]), -index))
    return [found[index] for index in sorted(best[:most])]
