"""A Pydantic AI agent whose context Windowpane picks, injects and records.

The model is a stand-in that says what it was given, so that this runs without a key; put your own in its place.
"""

import asyncio
from collections.abc import Sequence

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, SystemPromptPart, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import windowpane
from windowpane.integrations.pydantic_ai import Windowpane


def stand_in(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Say how much context there was."""
    texts = [part for message in messages for part in message.parts if isinstance(part, SystemPromptPart)]
    return ModelResponse([TextPart(f"I was given {len(texts)} system texts and {len(info.function_tools)} tools.")])


async def main(settings: windowpane.Settings) -> None:
    """Run an agent of yours in a session of Windowpane's."""
    async with windowpane.open(settings=settings) as pane:
        session = await pane.sessions.create()
        agent = Agent(FunctionModel(stand_in), capabilities=[Windowpane(pane, session.id)])
        for question in ("How do I add a rule?", "And a tool server?"):
            print((await agent.run(question)).output)
        for item in (await pane.turns.context(session.id, turn=2)).items:
            print(f"{item.ref} ({item.include_mode}): {item.reason}")


if __name__ == "__main__":
    chosen = windowpane.Settings()
    if not chosen.agents_folder.exists():
        windowpane.init_agent(chosen.agents_folder / "guide")
    asyncio.run(main(chosen))
