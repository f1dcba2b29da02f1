"""Embed Windowpane in ten lines: an agent's folder, a session, an answer, and what the model was given for it."""

import asyncio

from windowpane.agents.init import init_agent
from windowpane.context.events import Delta
from windowpane.settings import Settings
from windowpane.wiring import open_engine


async def main(settings: Settings) -> None:
    """Ask one question."""
    async with open_engine(settings) as engine:
        session = await engine.create_session()
        async for event in engine.turn(session.id, "How do I add a rule?"):
            if isinstance(event, Delta):
                print(event.text, end="")
        print()
        for item in (await engine.request_context(session.id, turn=1)).items:
            print(f"{item.ref} ({item.include_mode}): {item.reason}")


if __name__ == "__main__":
    chosen = Settings()
    if not chosen.agents_folder.exists():
        init_agent(chosen.agents_folder / "guide")
    asyncio.run(main(chosen))
