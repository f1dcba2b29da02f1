"""Tell by its address which protocol a call speaks, and what it is for.

The last parts of the path decide, so that gateways and other servers that take the same calls are known as well.
"""

import re
from dataclasses import dataclass
from typing import Literal

from windowpane.context.calls import CallPurpose

WireProtocol = Literal["anthropic", "openai", "openai-responses", "google", "ollama"]
"""How requests and answers are written: Anthropic's messages, OpenAI's chat and responses, Gemini, and Ollama."""


@dataclass(frozen=True, slots=True)
class CallKind:
    """The protocol of a call, and what it is for. `model` is the one that the path names, if it names one."""

    protocol: WireProtocol
    purpose: CallPurpose = "answer"
    model: str = ""


_ENDS: tuple[tuple[str, CallKind], ...] = (
    ("/messages", CallKind("anthropic")),
    ("/messages/count_tokens", CallKind("anthropic", "count")),
    ("/chat/completions", CallKind("openai")),
    ("/responses", CallKind("openai-responses")),
    ("/responses/input_tokens", CallKind("openai-responses", "count")),
    ("/api/chat", CallKind("ollama")),
    ("/api/generate", CallKind("ollama")),
)
_GOOGLE = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent|countTokens)$")


def kind_of(method: str, path: str) -> CallKind | None:
    """Return what a request is, or None when it is no call to a model: a list of models, a health check."""
    if method != "POST":
        return None
    path = path.rstrip("/")
    if found := _GOOGLE.search(path):
        return CallKind("google", "count" if found["verb"] == "countTokens" else "answer", found["model"])
    return next((kind for end, kind in _ENDS if path.endswith(end)), None)
