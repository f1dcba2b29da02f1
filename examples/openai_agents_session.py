"""An agent of the OpenAI Agents SDK that remembers in a session of Windowpane's.

The model is a stand-in that counts what it was given, so that this runs without a key; put your own in its place.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from openai.types.responses import ResponseOutputMessage, ResponseOutputText

import windowpane
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from windowpane.integrations.openai_agents import WindowpaneSession


class StandIn(Model):
    """Says how many items it was given."""

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        """Return one message."""
        given = options["input"]
        count = 1 if isinstance(given, str) else len(given)
        text = ResponseOutputText(text=f"I was given {count} items.", type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """Streaming is not needed here."""
        raise NotImplementedError


async def main(settings: windowpane.Settings) -> None:
    """Talk twice, and look at the conversation in Windowpane."""
    async with windowpane.open(settings=settings) as pane:
        session = await pane.sessions.create()
        memory = WindowpaneSession(pane, session.id)
        agent = Agent(name="Assistant", model=StandIn())
        for question in ("Hello.", "Do you remember me?"):
            result = await Runner.run(agent, question, session=memory, run_config=RunConfig(tracing_disabled=True))
            print(result.final_output)
        print([message.role for message in (await pane.sessions.messages(session.id)).messages])


if __name__ == "__main__":
    chosen = windowpane.Settings()
    if not chosen.agents_folder.exists():
        windowpane.init_agent(chosen.agents_folder / "guide")
    asyncio.run(main(chosen))
