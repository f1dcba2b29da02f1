"""Count tokens with a real tokenizer, offline.

OpenAI's `o200k_base` stands in for every provider's own vocabulary: the counts that providers report are kept beside
ours, so the difference is visible. The vocabulary is loaded at the first count.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from threading import Lock
from typing import Literal

import anyio.to_thread

from windowpane.context.identity_cache import cached_by_identity, cached_in
from windowpane.context.request import CallSettings, OfferedTool, RequestMessage
from windowpane.text.functions import as_function
from windowpane.text.vocabulary import as_unicode, vocabulary

MESSAGE_OVERHEAD_TOKENS = 4
"""What a message costs beyond its text: role and separators."""

CALL_OVERHEAD_TOKENS = 4
"""What a tool call costs beyond its name, arguments and id."""


def count(text: str) -> int:
    """Return the number of tokens of a text."""
    return _count(text) if len(text) <= _AT_ONCE else _count_long(text)


@cached_in("_tokens")
def message_tokens(message: RequestMessage) -> int:
    """Return what a message costs, tool calls, their ids and files included."""
    if not message.tool_calls and not message.tool_call_id and not message.files:
        return MESSAGE_OVERHEAD_TOKENS + count(message.content)
    calls = sum(
        count(call.offered_name) + count(call.arguments) + count(call.id) + CALL_OVERHEAD_TOKENS
        for call in message.tool_calls
    )
    answers = count(message.tool_call_id) if message.tool_call_id else 0
    files = sum(file.tokens for file in message.files)
    return MESSAGE_OVERHEAD_TOKENS + count(message.content) + calls + answers + files


Family = Literal["openai", "anthropic", "other", "not_shown"]
"""How a provider shows tools to its models: as a namespace of functions, as JSON behind a prompt, as JSON, or not."""

TOOLS_OVERHEAD_TOKENS: Mapping[Family, int] = {"openai": 9, "anthropic": 346, "other": 0, "not_shown": 0}
"""What the first tool costs beyond its own text."""


_OF_OPENAI = re.compile(r"(ft:)?(gpt|chatgpt|codex|computer-use|o\d)")


def family_of(model: str) -> Family:
    """Return how the provider of a model, `provider:model`, shows tools.

    Many servers speak OpenAI's protocol. What runs behind it tells from the model's name; Azure's users choose theirs.
    """
    provider, _, name = model.partition(":")
    match provider.partition("-")[0]:
        case "openai":
            return "openai" if _OF_OPENAI.match(name) else "other"
        case "azure":
            return "openai"
        case "anthropic":
            return "anthropic"
        case _:
            return "other"


def family_for(settings: CallSettings) -> Family:
    """Return how the model of a request is shown tools, as far as that was known."""
    return family_of(settings.model) if settings.tools_shown else "not_shown"


def counted_tokens(messages: Iterable[RequestMessage], tools: Sequence[OfferedTool], family: Family) -> int:
    """Return what the input of a call costs by our count."""
    return sum(map(message_tokens, messages)) + tools_tokens(tools, family)


def tools_tokens(tools: Sequence[OfferedTool], family: Family) -> int:
    """Return what offering tools costs together."""
    return sum(tool_tokens(tool, family) for tool in tools) + (TOOLS_OVERHEAD_TOKENS[family] if tools else 0)


def tool_tokens(tool: OfferedTool, family: Family = "other") -> int:
    """Return what offering a tool costs."""
    sizes = _tool_sizes(tool)
    if family not in sizes:
        sizes[family] = _tool_size(tool, family)
    return sizes[family]


@cached_by_identity
def _tool_sizes(tool: OfferedTool) -> dict[Family, int]:
    """Return the sizes of a tool that were counted already."""
    return {}


def _tool_size(tool: OfferedTool, family: Family) -> int:
    if family == "not_shown":
        return 0
    if family == "openai":
        return count(as_function(tool.offered_name, tool.description, tool.parameters))
    body = {"name": tool.offered_name, "description": tool.description, "input_schema": tool.parameters}
    return count(json.dumps(body, ensure_ascii=False, separators=(", ", ": ")))


def cut_to(text: str, budget_tokens: int) -> str:
    """Return the longest beginning of a text, whole tokens, that costs at most this much."""
    if budget_tokens <= 0:
        return ""
    tokens = _tokens(text)
    if len(tokens) <= budget_tokens:
        return text
    for end in range(budget_tokens, 0, -1):
        # A token may end inside a character: then it is left out, with those that the character begins in.
        with suppress(ValueError):
            return vocabulary().decode(tokens[:end])
    return ""


@lru_cache(maxsize=8192)
def _count(text: str) -> int:
    return vocabulary().count(as_unicode(text)) if text else 0


@lru_cache(maxsize=64)
def _count_long(text: str) -> int:
    # Remembered apart from the others: so many that are so long would fill the memory.
    return len(_tokens(text))


def _tokens(text: str) -> list[int]:
    # So much at once: where a text is cut decides a token or two, and counts do not change with a version.
    text = as_unicode(text)
    pieces = (text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE))
    return [token for piece in pieces for token in vocabulary().encode(piece)]


_AT_ONCE = 50_000


RAREST = 200_019
"""Beyond the last place of the vocabulary."""


@lru_cache(maxsize=65_536)
def rarity(word: str) -> int:
    """Return how far down a word stands in the vocabulary, which was made of the most common first.

    A word that is no token of its own is rarer than any that is one.
    """
    tokens = vocabulary().encode(as_unicode(f" {word}")) if len(word) <= _AT_ONCE else ()
    return tokens[0] if len(tokens) == 1 else RAREST


async def load_vocabulary() -> None:
    """Load the vocabulary in a thread, unless it is loaded: other requests would wait meanwhile."""
    if not vocabulary.cache_info().currsize:
        await anyio.to_thread.run_sync(_load)


_loading = Lock()


def _load() -> None:
    with _loading:
        vocabulary()
