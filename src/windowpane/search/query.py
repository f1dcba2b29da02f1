"""Work out what a message asks for.

Most messages speak for themselves, and are searched for as they are. A follow-up ("what about
resizing?") does not: its meaning is mixed with that of the turns before it. Mixed, not pasted:
the message itself keeps its weight. Whether a message is a follow-up is decided when it was searched
for by itself and found little (`search/follow_up.py`). A message that asks for several things is also
searched for clause by clause, and one that asks for nothing ("thanks, that's all") is known as such.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
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
    if is_small_talk(message):
        return SearchQuery(message, small_talk=True, reason="the message is small talk")
    clauses, cues = _clauses(message), _cues(message)
    begins_anew = bool(recent) and new_topic(message, [turn.text for turn in recent[-2:]]) >= LIKELY_NEW
    notes = ("it seems to start a new topic" if begins_anew else "", _clause_note(clauses), _cue_note(cues))
    reason = "; ".join(note for note in notes if note)
    return SearchQuery(message, clauses=clauses, cues=cues, reason=reason)


def with_turns(asked: SearchQuery, recent: Sequence[Utterance], related: Sequence[str] = ()) -> SearchQuery | None:
    """Return what to search for when a message is a follow-up; None where nothing was said that it could follow.

    `asked` is what the message asks for `alone`. `recent` are the turns before it, oldest first: what the user said
    last and the answer to it are taken. `related` are the titles of documents that the sources of earlier answers point
    to, latest first. A message that names one of them is a follow-up on it, and the title is searched for with it.
    """
    earlier = _earlier(recent, answers=True)
    if not earlier or asked.small_talk:
        return None
    message = asked.message
    meant = _meant(message, related)
    earlier = "\n".join((earlier, *meant))
    share = round(MOST_CONTEXT_SHARE * _dependence(message, recent), 3)
    share = max(share, RELATED_CONTEXT_SHARE) if meant else share
    if share < LEAST_CONTEXT_SHARE:
        return None
    about = f" to {' and '.join(repr(title) for title in meant)}" if meant else ""
    follow_up = f"treated as a follow-up{about}; {share:.0%} of the search weight comes from earlier turns"
    return SearchQuery(
        message,
        context=f"{earlier}\n{message}",
        context_share=share,
        earlier=earlier,
        named=meant,
        clauses=asked.clauses,
        cues=asked.cues,
        reason="; ".join(note for note in (follow_up, _clause_note(asked.clauses), _cue_note(asked.cues)) if note),
    )


def with_users_turns(mixed: SearchQuery, recent: Sequence[Utterance]) -> SearchQuery | None:
    """Return what to search for when a follow-up is not on the answer before it: on what the user said last, twice.

    `mixed` is the same `with_turns`. None where the user said nothing.
    """
    earlier = _earlier(recent, answers=False)
    if not earlier:
        return None
    earlier = "\n".join((earlier, *mixed.named))
    return replace(mixed, context=f"{earlier}\n{mixed.message}", earlier=earlier)


def query(message: str, recent: Sequence[Utterance] = (), related: Sequence[str] = ()) -> SearchQuery:
    """Return what to search for when every message that comes after others is taken for a follow-up."""
    asked = alone(message, recent)
    return with_turns(asked, recent, related) or asked


def said(messages: Sequence[Message]) -> tuple[Utterance, ...]:
    """Return what users and assistants said, without notes, errors, approvals and what `echo` shows of its request."""
    return _utterances(messages, len(messages))


def said_last(messages: Sequence[Message]) -> tuple[Utterance, ...]:
    """Return the end of what was `said`, from the last but one message of the user on: a query needs no more."""
    return _utterances(messages, 2)


def _utterances(messages: Sequence[Message], users: int) -> tuple[Utterance, ...]:
    found: list[Utterance] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            found.append(Utterance("user", message.content))
            users -= 1
            if not users:
                break
        elif isinstance(message, AssistantMessage) and not message.model_reply.is_echo:
            found.append(Utterance("assistant", message.model_reply.text))
    return tuple(reversed(found))


def after_echo(messages: Sequence[Message]) -> bool:
    """Tell whether the latest answer is one of the built-in model, which says nothing that could be asked about."""
    answers = (message for message in reversed(messages) if isinstance(message, AssistantMessage))
    return any(answer.model_reply.is_echo for answer in islice(answers, 1))


def latest(recent: Sequence[Utterance]) -> str:
    """Return the last passage of what was said last; after its turn a long one is embedded as it is (`past.py`)."""
    return chunks(recent[-1].text)[-1].text if recent and recent[-1].text.strip() else ""


def related(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the titles of documents that are related to the sources of these answers, the latest first."""
    answers = [m.related for m in reversed(messages) if isinstance(m, AssistantMessage) and m.related]
    return tuple(dict.fromkeys(chain.from_iterable(answers)))


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


def is_small_talk(message: str) -> bool:
    """Tell whether a message asks for nothing."""
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


def _cues(message: str) -> tuple[str, ...]:
    """Return the words that tools are described by which are for the kinds of thing that a message names."""
    found: list[re.Pattern[str]] = []
    rest = message
    # Every address and every file has a dot or a slash.
    if "." in message or "/" in message:
        # What looks like a file in an address is none.
        rest, addresses = _ADDRESS.subn(" ", message)
        found += [_ADDRESS] if addresses else []
        found += [_FILE] if _FILE.search(rest) else []
    found += [_MEMORY] if _MEMORY.search(rest) else []
    return tuple(cue for shape, cue in _CUES.values() if shape in found)


def _cue_note(cues: tuple[str, ...]) -> str:
    named = (kind for kind, (_, cue) in _CUES.items() if cue in cues)
    return f"it names {' and '.join(named)}, so tools for that come nearer" if cues else ""


def _earlier(recent: Sequence[Utterance], answers: bool) -> str:
    """Return the last thing the user said and the answer to it, or the last two things the user said."""
    users = [turn for turn in recent if turn.role == "user"]
    answer = recent[-1:] if recent and recent[-1].role == "assistant" else ()
    texts = (turn.text.strip()[-LONGEST_EARLIER_CHARS:] for turn in ((*users[-1:], *answer) if answers else users[-2:]))
    return "\n".join(text for text in texts if text)


def _meant(message: str, related: Sequence[str]) -> tuple[str, ...]:
    """Return the related titles that share the most words with a message; none when there is no word in common."""
    if not related:
        return ()
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
