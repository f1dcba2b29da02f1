"""What a request tells about the program that sends it: its name, and which of its conversations this is.

Claude Code and Codex name their sessions in headers. Other programs may send one of the usual headers.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.calls.documents import as_map, as_text

SESSION_HEADERS = (
    "x-session-id",
    "session-id",
    "session_id",
    "x-conversation-id",
    "conversation_id",
    "helicone-session-id",
    "x-litellm-session-id",
    "langfuse-session-id",
)
"""Headers in which programs name a session."""

_PRODUCT = re.compile(r"(?P<name>[^/\s]{1,60})(?:/(?P<rest>[^\s]{0,60}))?")
_OLD_USER_ID = re.compile(r"_session_([0-9a-f-]{36})$")


LONGEST_AGENT = 500
"""How much of a `User-Agent` is looked at."""


@dataclass(frozen=True, slots=True)
class ClientMarks:
    """The program, and its own id for the conversation; empty where it gives none.

    `thread` tells the conversations of one session apart, where the program does. `is_agent` tells that it is known
    to ask for small things beside its conversations, without tools.
    """

    program: str
    version: str = ""
    conversation: str = ""
    thread: str = ""
    is_agent: bool = False


def marks_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> ClientMarks:
    """Return what a request tells about its program. The names of headers are in lower case."""
    agent = headers.get("user-agent", "")[:LONGEST_AGENT]
    if agent.startswith("claude-cli/") or "x-claude-code-session-id" in headers:
        found = headers.get("x-claude-code-session-id") or _claude_session(body)
        return ClientMarks("claude-code", _version(agent), _id(found), is_agent=True)
    if agent.startswith("codex") or headers.get("originator", "").startswith("codex"):
        session = headers.get("session-id") or headers.get("session_id") or as_text(body.get("prompt_cache_key"))
        thread = headers.get("thread-id", "")
        return ClientMarks("codex", _version(agent), _id(session), _id(thread if thread != session else ""), True)
    session = next((headers[name] for name in SESSION_HEADERS if headers.get(name)), "")
    return ClientMarks(_program(agent), _version(agent), _id(session))


def _claude_session(body: Mapping[str, Any]) -> str:
    told = as_text(as_map(body.get("metadata")).get("user_id"))
    if told.startswith("{"):
        try:
            return as_text(as_map(json.loads(told)).get("session_id"))
        except ValueError:
            return ""
    found = _OLD_USER_ID.search(told)
    return found[1] if found else ""


def _program(agent: str) -> str:
    """Return the name of a program: `AsyncOpenAI/Python 3.1` is `openai-python`."""
    found = _PRODUCT.match(agent.strip())
    if not found:
        return "unknown"
    name = found["name"].removeprefix("Async")
    if found["rest"] in ("Python", "JS", "Go", "Java"):
        name = f"{name}-{found['rest']}"
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unknown"


def _version(agent: str) -> str:
    found = re.search(r"(?<!\d)\d+(?:\.\d+){1,3}", agent)
    return found[0] if found else ""


def _id(value: str) -> str:
    """Return a client's id as far as it can be shown and kept."""
    return "".join(letter for letter in value if letter.isprintable() and letter.isascii())[:200]
