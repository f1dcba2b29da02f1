"""What every framework's agent is asked in these tests, and what must be on record after it."""

from __future__ import annotations

from typing import Any

from windowpane.api.pane import Pane
from windowpane.context.items import tool_ref
from windowpane.context.messages import AssistantMessage, ErrorMessage, UserMessage

SYSTEM = "You are Pane.\n\n## Rule: tone\n\nBe kind."
RECORDED: list[Any] = [
    "Read a.",
    ("I look.", [("files__read", tool_ref("files", "read"))], ["contents of a"]),
    ("Done.", [], []),
    "Thanks.",
    ("Bye.", [], []),
]
"""Two turns, the first with a tool that was picked."""

FAILED: list[Any] = ["Hello?", "the run failed: RuntimeError: the model is down"]


async def conversation(pane: Pane, session: str) -> list[Any]:
    """Return who said what."""
    told: list[Any] = []
    for message in (await pane.sessions.messages(session)).messages:
        if isinstance(message, UserMessage | ErrorMessage):
            told.append(message.content)
        elif isinstance(message, AssistantMessage):
            for step in message.model_reply.steps:
                calls = [(call.offered_name, call.ref) for call in step.tool_calls]
                told.append((step.text, calls, [result.content for result in step.results]))
    return told
