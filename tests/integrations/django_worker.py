"""One worker of a Django site: `django_worker.py FOLDER NAME` says ten things in the session `s`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.conf import settings

folder, worker = Path(sys.argv[1]), sys.argv[2]


def main() -> None:
    """Say ten things."""
    cache = {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": str(folder), "TIMEOUT": 3600}
    given = {"AGENTS": folder / "agents", "DATA": folder, "STORE": "cache:default"}
    settings.configure(CACHES={"default": cache}, WINDOWPANE=given)

    from windowpane.context.events import MessageAdded
    from windowpane.integrations.django import get_context_manager

    manager = get_context_manager()

    async def say(engine: Any) -> None:
        state = await manager.state(engine, "s")
        for number in range(10):
            await engine.conversations.add(state.id, MessageAdded(role="user", content=f"{worker} {number}"))

    manager.running.ask(say)
    manager.close()


if __name__ == "__main__":
    main()
