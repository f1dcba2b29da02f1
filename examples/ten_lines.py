"""Embed Windowpane in ten lines: an agent's folder, a session, an answer, and what the model was given for it."""

import asyncio
from pathlib import Path

import windowpane


async def main(agents: Path) -> None:
    """Ask one question."""
    async with windowpane.open(agents=agents, store="memory:") as pane:
        session = await pane.sessions.create()
        async for event in pane.turn(session.id, "How do I add a rule?"):
            if isinstance(event, windowpane.Delta):
                print(event.text, end="")
        print()
        for item in (await pane.turns.context(session.id, turn=1)).items:
            print(f"{item.ref} ({item.include_mode}): {item.reason}")


if __name__ == "__main__":
    folder = Path("agents")
    if not folder.exists():
        windowpane.init_agent(folder / "guide")
    asyncio.run(main(folder))
