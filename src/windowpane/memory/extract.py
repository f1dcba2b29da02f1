"""Sum up a conversation without a model, in its own words.

The overview quotes the most central sentences, the topic is the user's last real question, and the state is read off
the last few messages. Nothing is rewritten, so nothing can be made up.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import sqrt

from windowpane.context.messages import AssistantMessage, UserMessage
from windowpane.context.summary import ConversationState, Summary
from windowpane.memory.facts import FACT_LIMITS, FactLimits, facts, merge_facts, merge_preferences, preferences
from windowpane.memory.recent import Due, text_of
from windowpane.search.query import query
from windowpane.search.words import words

EXTRACT = "extract"
"""Who made a summary that no model wrote."""

OVERVIEW_CHARACTERS = 900
TOPIC_CHARACTERS = 90
SENTENCE_CHARACTERS = 240
CENTRAL_SENTENCES = 4
USER_FACTS = 60
ANSWER_FACTS = 6
"""How many facts of one message are carried on; answers are long and mostly repeat what can be looked up."""

MOST_EVICTED = 60
"""How much of what there was no room for a summary lists; what went before stands in the summaries before it."""

MOST_MESSAGES = 300
"""How many messages are read for the overview, spread evenly where there are more."""

Spoken = UserMessage | AssistantMessage


def extract(due: Due, limits: FactLimits = FACT_LIMITS) -> Summary | None:
    """Return a summary that quotes, or None when nothing was said yet. The last overview is carried on as it stands."""
    before = due.before
    overview = joined(carried(due), _central(due.messages))
    if not overview:
        return None
    stated = facts_in(due.messages)
    key_facts = merge_facts(before.key_facts if before else (), stated, limits)
    wanted = tuple(chain.from_iterable(preferences(m.content) for m in due.messages if isinstance(m, UserMessage)))
    standing = merge_preferences(before.preferences if before else (), wanted, stated)
    evicted = (*(before.evicted if before else ()), *key_facts.evicted, *standing.evicted)
    return Summary(
        overview=overview,
        current_topic=_topic(due.messages) or (before.current_topic if before else ""),
        state=_state(due.messages),
        key_facts=key_facts.kept,
        preferences=standing.kept,
        evicted=tuple(dict.fromkeys(evicted))[-MOST_EVICTED:],
        through_seq=due.through_seq,
        made_by=EXTRACT,
    )


def facts_in(messages: Sequence[Spoken]) -> tuple[str, ...]:
    """Return the hard facts of messages in order."""
    return tuple(
        chain.from_iterable(
            facts(message.content, USER_FACTS, by_user=True)
            if isinstance(message, UserMessage)
            else facts(text_of(message), ANSWER_FACTS)
            for message in messages
        )
    )


def carried(due: Due) -> list[str]:
    """Return the sentences of the last overview."""
    return _sentences(due.before.overview) if due.before else []


def joined(before: Sequence[str], new: Sequence[str]) -> str:
    """Return sentences as one text that is not too long: the first one stays, and of the rest the latest."""
    kept = list(dict.fromkeys((*before, *new)))
    while len(kept) > 1 and len(" ".join(kept)) > OVERVIEW_CHARACTERS:
        del kept[1 if len(kept) > 2 else 0]
    return shortened(" ".join(kept), OVERVIEW_CHARACTERS)


def shortened(text: str, longest: int) -> str:
    """Return a text on one line, cut between words and marked where it was too long."""
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    space = text.rfind(" ", 0, longest)
    return f"{text[: space if space > longest // 2 else longest - 1].rstrip(' ,;:')}…"


def spread(messages: Sequence[Spoken], most: int) -> tuple[Spoken, ...]:
    """Return so many messages at most, evenly spread, the first and the last among them."""
    if len(messages) <= most:
        return tuple(messages)
    return tuple(messages[round(index * (len(messages) - 1) / (most - 1))] for index in range(most))


_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+")
_WORD = re.compile(r"\w")


def _sentences(text: str) -> list[str]:
    parts = (" ".join(part.split()) for part in _SENTENCE_END.split(text))
    return [part for part in parts if _WORD.search(part)]


def _central(messages: Sequence[Spoken]) -> list[str]:
    """Return the sentences that share most with the rest of the conversation, in order; what users said counts more."""
    candidates = [
        (shortened(sentence, SENTENCE_CHARACTERS), isinstance(message, UserMessage))
        for message in spread(messages, MOST_MESSAGES)
        if not (isinstance(message, UserMessage) and query(message.content).small_talk)
        for sentence in _sentences(text_of(message))[:20]
    ]
    stems = [frozenset(words(sentence)) for sentence, _ in candidates]
    shared = Counter(word for found in stems for word in found)

    def centrality(index: int) -> float:
        common = sum(shared[word] - 1 for word in stems[index])
        return (1.5 if candidates[index][1] else 1.0) * (common + 1) / sqrt(len(stems[index]) + 4)

    best = sorted(range(len(candidates)), key=lambda index: (-centrality(index), index))
    chosen: list[int] = []
    covered: set[str] = set()
    for index in best:
        # A sentence that says mostly what another one said already adds nothing.
        if len(stems[index] - covered) * 2 >= len(stems[index]):
            chosen.append(index)
            covered |= stems[index]
        if len(chosen) == CENTRAL_SENTENCES:
            break
    return [candidates[index][0] for index in sorted(chosen)]


def _topic(messages: Sequence[Spoken]) -> str:
    """Return the last thing the user really asked about."""
    asked = [m.content for m in messages if isinstance(m, UserMessage) and not query(m.content).small_talk]
    sentences = next((found for text in reversed(asked) if (found := _sentences(text))), list[str]())
    question = next((sentence for sentence in sentences if sentence.endswith("?")), None)
    return shortened(question or sentences[0], TOPIC_CHARACTERS) if sentences else ""


_RESOLVED = re.compile(
    r"""\b(?:
      that\ (?:worked|works|fixed|solved|did\ it)|it\ works|works\ (?:now|fine|great|perfectly)|solved|fixed\ it
    | all\ good|perfect,?\ thanks?|thanks?,?\ that|that'?s\ (?:all|it|everything)|no\ (?:more|further)\ questions
    | goodbye|bye
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_TROUBLE = re.compile(
    r"""\b(?:
      errors?|exceptions?|traceback|fail(?:s|ed|ing|ure)?|crash(?:es|ed|ing)?|broken|bugs?|stuck|wrong|cannot
    | not\ working|timed?\ ?out|refused|denied|undefined|segfault|stack\ trace|debug
    | (?:does|do|did|is|can|could|wo)(?:n['’]?t|\ not)\ (?:work|start|run|load|connect|compile|open|find|build)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_EXPLORING = re.compile(
    r"""\b(?:
      what|which|how|why|should\ i|could\ we|can\ i|is\ there|are\ there|options?|alternatives?|compare|difference
    | versus|vs|ideas?|recommend|suggest|explain|tell\ me|learn
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_LAST_SAID = 3


def _state(messages: Sequence[Spoken]) -> ConversationState:
    """Judge by the last things the user said where the conversation stands."""
    said = [text for message in messages if isinstance(message, UserMessage) and (text := message.content.strip())]
    if not said:
        return "unknown"
    recent = said[-_LAST_SAID:]
    if _RESOLVED.search(recent[-1]):
        return "resolved"
    if any(_TROUBLE.search(text) for text in recent):
        return "troubleshooting"
    if any(text.rstrip().endswith("?") or _EXPLORING.search(text) for text in recent):
        return "exploring"
    return "active"
