"""One run of another framework's agent as a prepared turn: what its model is given, and what came of it.

The run's prompt is a message to the session. Windowpane picks what belongs to it and records the request; the framework
calls the model with it, and its steps are recorded as the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from windowpane.context.messages import Step, ToolCall
from windowpane.context.request import OfferedTool, RequestMessage
from windowpane.local.pane import LocalPane
from windowpane.tools.base import ToolOutput
from windowpane.turn.prepared import Prepared


@dataclass
class AgentRun:
    """A run that has begun. It ends with `finish` or `fail`, once."""

    pane: LocalPane
    prepared: Prepared
    ended: bool = False

    @classmethod
    async def begin(cls, pane: LocalPane, session_id: str, message: str) -> "AgentRun":
        """Take in what the user says, and build the request for it."""
        return cls(pane, await pane.prepare(session_id, message))

    @property
    def system(self) -> str:
        """Return the system prompt."""
        return "\n\n".join(message.content for message in self._before if message.role == "system" and message.content)

    @property
    def history(self) -> list[RequestMessage]:
        """Return what stands between the system prompt and the user's message."""
        return [m for m in self._before if m.role != "system" and (m.content or m.tool_calls)]

    @property
    def tools(self) -> Mapping[str, OfferedTool]:
        """Return the tools that were picked, by the names that the model calls them."""
        return {tool.offered_name: tool for tool in self.prepared.request.tools}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run a tool that was picked. One that needs approval is refused: no user can be asked here."""
        return await self.pane.call_tool(self.prepared.session_id, self.tools[name].ref, arguments)

    def tool_call(self, call_id: str, name: str, arguments: str) -> ToolCall:
        """Return a call as it is recorded, with the tool behind its name where that was picked."""
        tool = self.tools.get(name)
        return ToolCall(call_id, name, arguments, tool.ref if tool else None)

    async def finish(self, steps: Sequence[Step]) -> None:
        """Record what the agent answered."""
        if not self.ended:
            self.ended = True
            await self.pane.record(self.prepared, steps)

    async def fail(self, error: BaseException) -> None:
        """Record that the run failed. The message and the request stay."""
        if not self.ended:
            self.ended = True
            with anyio.CancelScope(shield=True):
                await self.pane.abandon(self.prepared, f"the run failed: {type(error).__name__}: {error}")

    @property
    def _before(self) -> Sequence[RequestMessage]:
        return self.prepared.request.messages[:-1]
