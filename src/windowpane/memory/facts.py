"""Find the hard facts in what was said, and carry them on word for word.

A fact is a stretch of one line of a message, exactly as it was written: a short clause around a path, an address, an
amount, a date, an identifier, a command, a name or a decision, or what a user states in plain words
(`statements.py`). Standing preferences are kept apart. Facts are only ever kept or dropped. When there are too many,
those that say least go first, and what went is returned; when a later one says something else about the same subject
("the port is 8080", "the port is now 9090"), the earlier one goes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from windowpane.memory.changes import changes
from windowpane.memory.hard_parts import CODE, command, hard_spans
from windowpane.memory.statements import BINDING, is_chatty, preference_weight, statement_weight
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
PREFERENCE_LIMITS = FactLimits(most=24, most_tokens=320)
"""How much standing preferences may take beside the facts."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What is carried on, and what there was no room for, each in the order in which it was said."""

    kept: tuple[str, ...]
    evicted: tuple[str, ...] = ()


def facts(text: str, most: int = MOST_PER_MESSAGE, *, by_user: bool = False) -> tuple[str, ...]:
    """Return the facts of one message in the order in which they stand there, at most so many.

    Of a user's message also what it states in plain words, without standing preferences.
    """
    found = list(dict.fromkeys(fact for line in _lines(text) for fact in _line_facts(line, by_user)))
    return tuple(_most_telling(_without_repeats(_most_telling(found, 10 * most)), most))


def preferences(text: str) -> tuple[str, ...]:
    """Return the standing preferences that a user's message states, in the order in which they stand there."""
    clauses = (_bare(clause) for line in _lines(text) for clause in _clauses(_LIST_MARK.sub("", line)))
    return tuple(dict.fromkeys(clause for clause in clauses if clause and preference_weight(clause)))


def merge_facts(before: Sequence[str], new: Sequence[str], limits: FactLimits = FACT_LIMITS) -> Merged:
    """Return the facts to carry on: those from before, then the new ones, each exactly as it was given.

    A fact that another one contains goes, and so does one whose subject a later one speaks of again. What is too
    much is evicted, least telling first, older first.
    """
    return _within(_current(_without_repeats(list(dict.fromkeys((*before, *new))))), weight, limits)


def merge_preferences(before: Sequence[str], new: Sequence[str], later: Sequence[str] = ()) -> Merged:
    """Return the standing preferences to carry on, in the same way; one that `later` facts change goes too."""
    found = _without_repeats(list(dict.fromkeys((*before, *new))))
    known = len([text for text in found if text in before])
    valid = [
        text
        for index, text in enumerate(found)
        # Two tastes do not exclude each other; a rule can be taken back.
        if preference_weight(text) < BINDING
        or not any(changes(text, other) for other in (*found[index + 1 :], *(later if index < known else ())))
    ]
    return _within(valid, preference_weight, PREFERENCE_LIMITS)


def _within(found: Sequence[str], worth: Callable[[str], float], limits: FactLimits) -> Merged:
    room = limits.most_tokens
    taken: set[int] = set()
    for index in sorted(range(len(found)), key=lambda index: (-worth(found[index]), -index)):
        tokens = count(found[index]) + 1
        if tokens <= room and len(taken) < limits.most:
            room -= tokens
            taken.add(index)
    return Merged(
        tuple(text for index, text in enumerate(found) if index in taken),
        tuple(text for index, text in enumerate(found) if index not in taken),
    )


def weight(fact: str) -> float:
    """Return how much a fact tells: what it names, states and decides; long ones tell less per word."""
    kinds = {kind for kind, _, _ in hard_spans(fact)}
    decided = 4.0 if _DECISION.search(fact) else 0.0
    hard = sum(_WEIGHTS[kind] for kind in kinds)
    return decided + hard + 1.5 * statement_weight(fact) + (0.5 if subject(fact) else 0.0) - len(fact) / 200


def subject(fact: str) -> str:
    """Return what a fact is about when it says so plainly ("the port is …", "port: …"), else nothing."""
    stated = _STATED.match(fact)
    if stated is None:
        return ""
    words = [word for word in stated["subject"].lower().split() if word not in _ARTICLES]
    vague = not words or not _VAGUE.isdisjoint(words) or len(words) > _LONGEST_SUBJECT_WORDS
    return "" if vague or not hard_spans(stated["value"]) else " ".join(words)


# Where facts stand.

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_LIST_MARK = re.compile(r"^\s*(?:[-*•+]|\d+[.)]|>|#{1,6})\s+")
_CLAUSE_END = re.compile(
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\b[DM]r\.)(?<!\bM[rs]s\.)(?<!\bMs\.)(?<!\bNo\.)(?<=[.!?;])[\"')\]]*\s+|(?<!\s)\s+[–—]\s+|(?<=\])\s+(?=[A-Z])"
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
        elif not fenced or command(line):
            yield line


def _cut(longest: int) -> Callable[[str], str]:
    """Cut long texts between two words: half a word would be no fact."""

    def cut(text: str) -> str:
        if len(text) <= longest:
            return text
        spaces = list(_SPACE.finditer(text, 0, longest))
        return text[: spaces[-1].start()] if spaces else ""

    return cut


def _line_facts(line: str, by_user: bool) -> Iterator[str]:
    if found := command(line):
        yield found
        return
    line = _LIST_MARK.sub("", line)
    for clause in _clauses(line):
        yield from _clause_facts(clause, by_user)


def _clauses(line: str) -> Iterator[str]:
    """Split a line at the ends of sentences, but not inside of quoted code."""
    quoted = [match.span() for match in CODE.finditer(line)]
    start = 0
    for match in _CLAUSE_END.finditer(line):
        if not any(left < match.start() < right for left, right in quoted):
            yield line[start : match.end()]
            start = match.end()
    yield line[start:]


def _bare(clause: str) -> str:
    """Return a clause without the filler before it and the marks around it."""
    clause = clause.strip(_TRIMMED)
    filler = _FILLER.match(clause)
    return _balanced(clause[filler.end() if filler else 0 :].strip(_TRIMMED))


def _clause_facts(clause: str, by_user: bool) -> Iterator[str]:
    asks = clause.rstrip(" \"')*_").endswith("?")
    clause = _bare(clause)
    parts = hard_spans(clause)
    if asks:
        # A question states nothing, but what it names may matter.
        yield from (clause[start:end] for kind, start, end in parts if kind in _NAMED_IN_QUESTIONS)
        return
    states = by_user and statement_weight(clause) > 0
    hard = not {kind for kind, _, _ in parts} <= _SAID_IN_PASSING
    # Every greeting has a name; a longer clause that neither praises nor thanks says something about it.
    hard = hard or (by_user and bool(parts) and len(clause.split()) >= _FEWEST_WORDS and not is_chatty(clause))
    if (by_user and preference_weight(clause)) or not (hard or states or _DECISION.search(clause)):
        return
    if len(clause) <= LONGEST_FACT:
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
_SAID_IN_PASSING = frozenset({"name", "time"})
"""Names and days of the week make a clause no fact by themselves: every greeting has one."""

_FEWEST_WORDS = 5
_DECISION = re.compile(
    r"""\b(?:
      (?:we|i|they|you|team)\b.{0,24}\b(?:decided|agreed|chose|picked|settled\ on|committed\ to|opted)
    | (?:let'?s|let\ us|we'?ll|we\ will|i'?ll|going\ to|we\ should)
      \ (?:go\ with|use|stick\ (?:with|to)|keep(?!\ (?:\w+in[g'’]|each|it\b))|switch\ to|avoid)
    | do(?:n't|\ not)\ (?:use|touch|change|deploy|delete|commit|push|call|send|share|store)
    | going\ with|decision|must(?:n't)?\b(?!['’]|\ (?:have|be|feel|mean|say|try))|always\ use
    | deadline|due\ (?:by|on)|requirement|not\ allowed|forbidden|allergic|remember\ that
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_STATED = re.compile(
    r"(?P<subject>[^\d:=,;`]{2,60}?)(?:\s++(?:is|are|was|were|will be|has been|runs? on|lives? (?:in|at)"
    r"|listens? on|changed to|moved to)(?:\s++(?:now|actually|currently|changed to|moved to|set to|at|on|in))*\b"
    r"|\s*+[:=])\s*+(?P<value>\S.*)",
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
