"""Work out what a message asks for.

Most messages speak for themselves, and are searched for as they are. A follow-up ("what about
resizing?") does not: its meaning is mixed with that of the turns before it. Mixed, not pasted:
the message itself keeps its weight. Whether a message is a follow-up is decided when it was searched
for by itself and found little (`search/follow_up.py`). A message that asks for several things is also
searched for clause by clause, and one that asks for nothing ("thanks, that's all") is known as such.
"""

import re
from collections.abc import Mapping, Sequence
from math import exp, log1p

from windowpane.context.messages import AssistantMessage, Message, UserMessage, Utterance
from windowpane.search.base import SearchQuery
from windowpane.search.chunks import chunks
from windowpane.search.topic import BEGINS_CONNECTED, POINTS_BACK, content_words, new_topic

MOST_CLAUSES = 4
SHORTEST_CLAUSE_WORDS = 3
LONGEST_EARLIER_CHARS = 200
"""What is taken of each earlier turn: its end, where the question or the answer is. More finds no more, and costs."""

MOST_CONTEXT_SHARE = 0.7
"""How much of the meaning may come from earlier turns."""

LEAST_CONTEXT_SHARE = 0.05
"""Below this, earlier turns are not worth embedding."""

RELATED_CONTEXT_SHARE = 0.35
"""How much comes from earlier turns at least, when a message names a document that is related to their sources."""

MOST_RELATED = 2
LIKELY_NEW = 0.5
"""From here on a message is said to begin a new subject. It is told, and changes nothing about the search."""

# How much of a follow-up's meaning comes from the turns before it. Rounded by hand from a logistic regression over the
# turns of three public sets of dialogues (docs/lab-notes.md): the less a follow-up says itself, the more.
_BASE = 5.0
_PER_LOG_WORD = -2.0
_CONNECTIVE = 1.4
_POINTING = 0.4
_ANSWERING = 0.6


def alone(message: str, recent: Sequence[Utterance] = ()) -> SearchQuery:
    """Return what to search for on behalf of a message by itself; the conversation before it only adds a remark."""
    if _is_small_talk(message):
        return SearchQuery(message, small_talk=True, reason="the message is small talk")
    clauses = _clauses(message)
    begins_anew = bool(recent) and new_topic(message, [turn.text for turn in recent]) >= LIKELY_NEW
    named = _named(message)
    notes = ("it seems to start a new topic" if begins_anew else "", _clause_note(clauses), _cue_note(named))
    reason = "; ".join(note for note in notes if note)
    return SearchQuery(message, clauses=clauses, cues=tuple(named.values()), reason=reason)


def with_turns(
    message: str, recent: Sequence[Utterance], related: Sequence[str] = (), *, answers: bool = True
) -> SearchQuery | None:
    """Return what to search for when a message is a follow-up; None where nothing was said that it could follow.

    `recent` are the turns before it, oldest first: what the user said last and the answer to it are taken, or, without
    `answers`, the last two things that the user said. `related` are the titles of documents that the sources of earlier
    answers point to, latest first. A message that names one of them is a follow-up on it, and the title is searched for
    with it.
    """
    earlier = _earlier(recent, answers)
    if not earlier or _is_small_talk(message):
        return None
    meant = _meant(message, related)
    earlier = "\n".join((earlier, *meant))
    share = round(MOST_CONTEXT_SHARE * _dependence(message, recent), 3)
    share = max(share, RELATED_CONTEXT_SHARE) if meant else share
    if share < LEAST_CONTEXT_SHARE:
        return None
    clauses, named = _clauses(message), _named(message)
    about = f" to {' and '.join(repr(title) for title in meant)}" if meant else ""
    follow_up = f"treated as a follow-up{about}; {share:.0%} of the search weight comes from earlier turns"
    return SearchQuery(
        message,
        context=f"{earlier}\n{message}",
        context_share=share,
        earlier=earlier,
        named=meant,
        clauses=clauses,
        cues=tuple(named.values()),
        reason="; ".join(note for note in (follow_up, _clause_note(clauses), _cue_note(named)) if note),
    )


def query(message: str, recent: Sequence[Utterance] = (), related: Sequence[str] = ()) -> SearchQuery:
    """Return what to search for when every message that comes after others is taken for a follow-up."""
    return with_turns(message, recent, related) or alone(message, recent)


def said(messages: Sequence[Message]) -> tuple[Utterance, ...]:
    """Return what users and assistants said, without notes, errors and approvals."""
    return tuple(
        Utterance("user", m.content) if isinstance(m, UserMessage) else Utterance("assistant", m.model_reply.text)
        for m in messages
        if isinstance(m, UserMessage | AssistantMessage)
    )


def latest(recent: Sequence[Utterance]) -> str:
    """Return the last passage of what was said last; after its turn a long one is embedded as it is (`past.py`)."""
    return chunks(recent[-1].text)[-1].text if recent and recent[-1].text.strip() else ""


def related(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the titles of documents that are related to the sources of these answers, the latest first."""
    answers = (m for m in reversed(messages) if isinstance(m, AssistantMessage))
    return tuple(dict.fromkeys(title for answer in answers for title in answer.related))


_WORD = re.compile(r"[\w']+")
_CLOSING = re.compile(
    r"\b(thanks?|thank you|bye|goodbye|that'?s (it|all|everything)|that is (it|all|everything)"
    r"|that('ll| will| would) be (it|all)|nothing (else|more)|all (set|done)|not (right )?(now|yet|away)"
    r"|not at (the|this) (moment|time)|maybe later|cheers|hello|hi|hey|good (morning|evening|afternoon|night|day))\b",
    re.IGNORECASE,
)
_LONGEST_SMALL_TALK_WORDS = 16
_POLITE = frozenset(
    re.findall(
        r"\S+",
        """'ll a again all am amazing and any anything appreciate appreciated are assist assistance at away
        awesome be been being but bye care cheers cool day did do don't done dont efforts else evening every
        everything excellent few fine first for get go good goodbye got grateful great has have hello help
        helped helpful helping hey hi i i'd i'll i'm im in info information informative is it it's its just
        kind know later let little lot lots maybe me minute moment more morning much nah need needed nice
        night no nope not nothing now of ok okay one other perfect questions really right see set so soon
        take thank thanks that that'll that's thats the there thing things this time to today ton ty u very
        wait want wanted was we we're welcome well while will wonderful would yet you your""",
    )
)


def _is_small_talk(message: str) -> bool:
    words = _WORD.findall(message.lower().replace("’", "'"))
    polite = len(words) <= _LONGEST_SMALL_TALK_WORDS and all(word in _POLITE for word in words)
    return polite and _CLOSING.search(message.replace("’", "'")) is not None


# The blanks before a word are bounded: a long run of them would be tried from each of its places to its end.
_CLAUSE_END = re.compile(
    r"(?<=[.!?;])\s+|\n+|,?\s{1,8}(?:and|then|also|plus|as well as|but)\s+(?:then\s+|also\s+)?", re.IGNORECASE
)


def _clauses(message: str) -> tuple[str, ...]:
    """Return the clauses of a message that has several, its first ones."""
    parts = (part.strip(" ,") for part in _CLAUSE_END.split(message))
    clauses = tuple(part for part in parts if len(part.split()) >= SHORTEST_CLAUSE_WORDS)
    return clauses[:MOST_CLAUSES] if len(clauses) > 1 else ()


def _clause_note(clauses: tuple[str, ...]) -> str:
    return f"searched as a whole and by each of its {len(clauses)} clauses" if clauses else ""


# What a message names, and how tools for it are described: "notes.txt" does not say "file", nor "example.com" "web",
# nor "remember that I moved" "memory".
_ADDRESS = re.compile(
    r"https?://\S+|(?<![\w@.-])(?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|io|dev|app|info|eu|uk|de|fr|nl|it|es|ch|jp)\b(?:/\S*)?",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"(?<![\w@./~-])(?!(?:node|vue|next|nuxt|react|express|three|d3)\.js\b)[\w./~-]*[\w-]\.(?:txt|md|rst|pdf|csv|tsv|json|jsonl|ya?ml"
    r"|toml|ini|cfg|conf|log|xml|html?|css|docx?|xlsx?|pptx?|odt|png|jpe?g|gif|svg|webp|mp[34]|mov|wav|zip|tar|gz|py|ipynb"
    r"|[jt]sx?|java|cpp|rs|go|rb|php|sh|sql|tex|bak|tmp)\b|(?<![\w:/])(?:~|\.{1,2})?/[\w.-]+/[\w./-]*",
    re.IGNORECASE,
)
_MEMORY = re.compile(
    r"(?:^|[.!?;,]\s+|\band\s+)(?:please\s+|now\s+|also\s+)?(?:remember|memori[sz]e|forget|note)"
    r"\s+(?:that|what|this|it|everything|all|about|my|our|who|where|when|how)\b"
    r"|\bkeep (?:that|this|it) in mind\b|\bdo(?:n't| not) forget that\b|\bdo you still know\b"
    r"|\b(?:do|can|did) you (?:still )?(?:remember|recall)\b|\bI(?: have|'ve)? told you\b"
    r"|\bwhat do you (?:still )?(?:know|remember|recall) (?:about|of) (?:me\b|my\b|our\b|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_CUES = {
    "a web address": (_ADDRESS, "open a web page at a URL"),
    "a file": (_FILE, "read or write a file"),
    "what is to be remembered": (_MEMORY, "add, search or delete facts in a memory or knowledge graph"),
}


def _named(message: str) -> dict[str, str]:
    """Return the kinds of thing that a message names, with the words that tools for them are described by."""
    # What looks like a file in an address is none.
    rest = _ADDRESS.sub(" ", message)
    return {kind: cue for kind, (shape, cue) in _CUES.items() if shape.search(message if shape is _ADDRESS else rest)}


def _cue_note(named: Mapping[str, str]) -> str:
    return f"it names {' and '.join(named)}, so tools for that come nearer" if named else ""


def _earlier(recent: Sequence[Utterance], answers: bool) -> str:
    """Return the last thing the user said and the answer to it, or the last two things the user said."""
    users = [turn for turn in recent if turn.role == "user"]
    answer = recent[-1:] if recent and recent[-1].role == "assistant" else ()
    texts = (turn.text.strip()[-LONGEST_EARLIER_CHARS:] for turn in ((*users[-1:], *answer) if answers else users[-2:]))
    return "\n".join(text for text in texts if text)


def _meant(message: str, related: Sequence[str]) -> tuple[str, ...]:
    """Return the related titles that share the most words with a message; none when there is no word in common."""
    own = content_words(message)
    shared = {title: len(own & content_words(title)) for title in dict.fromkeys(related)}
    best = max(shared.values(), default=0)
    return tuple(title for title, count in shared.items() if count == best > 0)[:MOST_RELATED]


def _dependence(message: str, recent: Sequence[Utterance]) -> float:
    """Return between 0 and 1 how much a message leans on what was said before."""
    answers = recent[-1].role == "assistant" and recent[-1].text.rstrip().endswith("?")
    evidence = (
        _BASE
        + _PER_LOG_WORD * log1p(len(message.split()))
        + _CONNECTIVE * (BEGINS_CONNECTED.match(message) is not None)
        + _POINTING * (POINTS_BACK.search(message) is not None)
        + _ANSWERING * answers
    )
    return 1 / (1 + exp(-evidence))
