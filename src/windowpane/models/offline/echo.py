"""The built-in model: no key, no network, and an answer about what it was given.

It cannot think. It says which rules, references and tools it has, quotes the sentences that share the most words
with the question, calls a tool when it is told to in so many words, and reports what came back. That is enough to
see the whole product work on a first run. The same request always gets the same answer.
"""

import json
import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    SystemPromptPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.profiles import ModelProfile

from windowpane.context.messages import ECHO
from windowpane.models.offline.model import Call, OfflineModel, Piece, words

MOST_QUOTES = 3
LONGEST_QUOTE = 400

GREETING = (
    "I am the built-in offline model: I can show what I was given, but I cannot think. "
    "Choose a real model in the menu below the message, with `/model` in a terminal, or with `model: provider:name` in "
    "agent.yaml."
)

_HEADING = re.compile(r"(#{1,6})[ \t]++(.+)$")
_ITEM_NAME = re.compile(r"[a-z0-9][A-Za-z0-9_-]*|[A-Za-z0-9]*[_-][A-Za-z0-9_-]*")
_BLOCKS = {"rules": "rule", "references": "reference"}
_OPENING = re.compile(r"\[\[context (\w+)\]\]")
_BOUNDARY = re.compile(r"\[\[(?:context|end) \w+\]\]$")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)")
_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?:ing|ed|es|e|s)$")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by can could did do does for from had has have how i if in is it its me my no not "
        "of on or our please should so tell than that the their them then there these they this to us use was we were "
        "what when where which who why will with would you your",
    )
)


@dataclass(frozen=True, slots=True)
class Given:
    """What one request contains, as far as its headings tell."""

    rules: tuple[str, ...]
    references: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    question: str
    results: tuple[tuple[str, str], ...]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Item:
    kind: str
    name: str
    text: str


def echo_model() -> OfflineModel:
    """Return the model for pydantic-ai. It cannot be made to answer in JSON, nor to call a tool."""
    profile = ModelProfile(supports_json_schema_output=False, supports_forced_tool_choice=False)
    return OfflineModel(ECHO, _speak, profile)


def answer(given: Given) -> str:
    """Return what echo says to a request."""
    if given.results:
        return "\n\n".join(_report(tool, result) for tool, result in given.results)
    said = (GREETING, _inventory(given), _seen(given), _quotes(given))
    return "\n\n".join(filter(None, said))


def wanted_call(given: Given) -> tuple[str, str] | None:
    """Return the tool and the arguments that the user asked for in so many words, or None.

    Understood are `/tool name {json}`, and "call", "use" or "run" with an offered name, with or without arguments. The
    server's name may be left out where only one tool is called so.
    """
    if given.results:
        return None
    bare = Counter(name.partition("__")[2] for name in given.tools)
    names = {name.partition("__")[2]: name for name in given.tools if bare[name.partition("__")[2]] == 1}
    names |= {name: name for name in given.tools}
    for said in sorted(filter(None, names), key=len, reverse=True):
        asked = re.search(
            rf"(?:^\s*/tool|\b(?:call|use|run))\s+[`\"']?{re.escape(said)}(?![\w-])", given.question, re.IGNORECASE
        )
        if asked:
            return names[said], _arguments(given.question[asked.end() :])
    return None


def given_in(messages: Sequence[ModelMessage], tools: Sequence[str]) -> Given:
    """Read a request: what the system announces, the last thing the user wrote, and any tool results after that."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    users = [_text(part) for part in parts if isinstance(part, UserPromptPart)]
    system = [part.content for part in parts if isinstance(part, SystemPromptPart)]
    chosen = [text for text in users[-2:-1] if _is_enclosed(text, system)]
    items = [item for text in (*system, *chosen) for item in _items(text)]
    return Given(
        rules=tuple(dict.fromkeys(item.name for item in items if item.kind == "rule")),
        references=tuple({item.name: (item.name, item.text) for item in items if item.kind == "reference"}.values()),
        tools=tuple(tools),
        question=users[-1] if users else "",
        results=_latest_results(messages),
        files=tuple(_files(parts)),
    )


def _files(parts: Sequence[ModelRequestPart]) -> Iterator[str]:
    """Name the files of the user's last message."""
    last = next((part for part in reversed(parts) if isinstance(part, UserPromptPart)), None)
    for piece in last.content if last is not None and not isinstance(last.content, str) else ():
        if isinstance(piece, BinaryContent):
            yield f"{piece.identifier} ({piece.media_type}, {len(piece.data):,} bytes)"


def _seen(given: Given) -> str:
    return f"With your message came {', '.join(given.files)}. I cannot see what it shows." if given.files else ""


async def _speak(messages: list[ModelMessage], tools: list[str]) -> AsyncGenerator[Piece]:
    given = given_in(messages, tools)
    wanted = wanted_call(given)
    if wanted is None:
        for word in words(answer(given)):
            yield word
        return
    name, arguments = wanted
    for word in words(f"You asked for {name}, so I call it."):
        yield word
    yield Call(name, arguments, id=f"call_{len(messages)}")


def _is_enclosed(text: str, system: Sequence[str]) -> bool:
    """Tell whether a user-role message is the system's own: it starts with a code that the system prompt names."""
    opening = _OPENING.match(text)
    return opening is not None and any(opening[1] in prompt for prompt in system)


def _items(text: str) -> Iterator[_Item]:
    """Find the items below `# Rules` and `# References`. Other headings belong to the item they stand in."""
    kind, name, lines = "", "", list[str]()
    for line in text.splitlines():
        heading = _HEADING.match(line)
        title = heading[2].rstrip(" \t") if heading else ""
        block = _BLOCKS.get(title.lower()) if heading and len(heading[1]) == 1 else None
        starts_item = bool(kind and heading and len(heading[1]) == 2 and _ITEM_NAME.fullmatch(title))
        if (block or starts_item) and name:
            yield _Item(kind, name, "\n".join(lines).strip())
        if block:
            kind, name, lines = block, "", []
        elif starts_item:
            name, lines = title, []
        elif not _BOUNDARY.match(line):
            lines.append(line)
    if name:
        yield _Item(kind, name, "\n".join(lines).strip())


def _text(part: UserPromptPart) -> str:
    return part.content if isinstance(part.content, str) else ""


def _latest_results(messages: Sequence[ModelMessage]) -> tuple[tuple[str, str], ...]:
    last = messages[-1] if messages else None
    if not isinstance(last, ModelRequest) or any(isinstance(part, UserPromptPart) for part in last.parts):
        return ()
    return tuple((part.tool_name, str(part.content)) for part in last.parts if isinstance(part, ToolReturnPart))


def _report(tool: str, result: str) -> str:
    return f"{tool} answered:\n\n{_quote(_shortened(result))}"


def _inventory(given: Given) -> str:
    names = (
        ("Rules", given.rules),
        ("References", tuple(title for title, _ in given.references)),
        ("Tools", given.tools),
    )
    lines = [f"- {kind}: {', '.join(found) if found else 'none'}" for kind, found in names]
    return "\n".join(("For this message I was given:", *lines))


def _quotes(given: Given) -> str:
    best = sorted(_matches(given), key=lambda match: -match[0])[:MOST_QUOTES]
    if not best:
        hint = f" To see a tool called, write `use {given.tools[0]}`." if given.tools else ""
        return f"Nothing in my references shares a word with your message.{hint}"
    return "\n\n".join(
        ("What my references say about it:", *(f"{_quote(sentence)}\n>\n> — {title}" for _, title, sentence in best))
    )


def _matches(given: Given) -> Iterator[tuple[float, str, str]]:
    """Score every sentence of the references by the words it shares with the question; a rare word counts more."""
    asked = _telling_words(given.question)
    sentences = [(title, sentence) for title, text in given.references for sentence in _SENTENCE_END.split(text)]
    shared = [asked & _telling_words(sentence) for _, sentence in sentences]
    uses = Counter(word for found in shared for word in found)
    for (title, sentence), found in zip(sentences, shared, strict=True):
        if found:
            yield math.fsum(1 / uses[word] for word in found), title, _shortened(sentence.strip())


def _telling_words(text: str) -> frozenset[str]:
    """Return the words that carry meaning, without their endings, so that "resizing" meets "resized"."""
    found = (word.lower() for word in _WORD.findall(text))
    return frozenset(_ENDING.sub("", word) if len(word) > 4 else word for word in found if word not in _COMMON)


def _arguments(rest: str) -> str:
    """Return the JSON object that follows, as it was written; what looks like one but is broken is passed on too."""
    start = rest.find("{")
    if start < 0:
        return "{}"
    try:
        _, end = json.JSONDecoder().raw_decode(rest, start)
    except ValueError:
        return rest[start:].strip()
    return rest[start:end]


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rstrip()} …"
