"""One session with every kind of call: answers, retries, what a tool asks the model, and a summary."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from calls.laws import PRICES, assert_laws
from calls.test_ledger import PROVIDERS
from patience import PATIENCE_S
from server.place import listening, new_session
from windowpane.agents.folder import FolderAgents
from windowpane.context.messages import Usage
from windowpane.engine import Engine
from windowpane.models.provider import PydanticModels
from windowpane.server.app import create_app
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World
from windowpane.tools.mcp import McpToolbox
from wire.reply import WireCall, WireReply
from wire.server import running

SERVER = Path(__file__).parents[1] / "tools" / "servers" / "by_sdk.py"
CONSULT = WireCall("c1", "shop__consult", (json.dumps({"times": 2, "words": 3, "max_tokens": 90}),))
SUMMARY = WireCall(
    "s1", "record_summary", (json.dumps({"overview": "Shades “ä” of house paint.", "current_topic": "paint"}),)
)
TURNS, SUMMED_UP_AFTER = 8, 6
"""How many turns there are, and after which of them the conversation is summed up."""


GOOD: tuple[Any, ...] = ("", SUMMARY)


@asynccontextmanager
async def _served(world: World) -> AsyncGenerator[httpx2.AsyncClient]:
    reach = {"command": sys.executable, "args": [str(SERVER), "stdio"], "permission": "not_required", "timeout_s": 60}
    world.write("mcp.json", json.dumps({"mcpServers": {"shop": reach}}))
    engine = Engine(
        store=world.store,
        agents=FolderAgents(world.root),
        models=PydanticModels(environ=world.environ),
        toolbox=McpToolbox,
        settle_s=PATIENCE_S,
    )
    async with (
        listening(create_app(engine)) as address,
        httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client,
    ):
        yield client


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.parametrize("summary", [GOOD, ("I would rather not.",)], ids=["summary", "no-summary"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_answers_sampling_and_summaries_of_one_session_hold_the_laws(
    tmp_path: Path, name: str, summary: tuple[Any, ...]
) -> None:
    provider = PROVIDERS[name]
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    settings = "working_context: false\nfinders: false\nmemory: {messages: 8}\n"
    world.write("agent.yaml", f"model: {provider.model}\n{settings}prices:\n  {provider.model}: {PRICES}\n")
    calls: list[dict[str, Any]] = []
    counts = iter(range(100, 10_000, 100))
    served: list[WireReply] = []

    def said(text: str, *calls: WireCall) -> WireReply:
        served.append(WireReply((text,) if text else (), calls=calls, input_tokens=next(counts), output_tokens=7))
        return served[-1]

    async with running() as server:
        world.environ = provider.environ(server.url)
        async with _served(world) as http:
            session = await new_session(http)
            path = f"/api/sessions/{session}"
            server.add(provider.problem(500), provider.answer(said("Let me ask.", CONSULT)))
            server.add(*[provider.answer(said(f"Sampled “{place}”.")) for place in range(2)])
            for turn in range(TURNS):
                server.add(provider.answer(said(f"Noted {turn}.")))
                if turn == SUMMED_UP_AFTER:
                    server.add(provider.answer(said(*summary)))
                answer = await http.post(f"{path}/messages", json={"content": f"Shade {turn} of “ä”."})
                assert (answer.status_code, answer.json()["outcome"]) == (200, "completed"), answer.text
                while len(calls := await _ended(http, path)) <= len(served):
                    pass
            reported = sum((Usage(reply.input_tokens, reply.output_tokens) for reply in served), Usage())
            await assert_laws(http, server, [session], reported, without_usage=1)

    assert [call["purpose"] for call in calls] == [
        *("answer", "answer", "sampling", "sampling", "answer"),
        *["answer"] * 6,
        "summary",
        "answer",
    ]
    assert (summary == GOOD) == (b" of house paint." in server.asked[-1].raw)


async def _ended(http: httpx2.AsyncClient, path: str) -> list[dict[str, Any]]:
    """Return the calls of a session that have ended."""
    calls = (await http.get(f"{path}/calls")).json()["calls"]
    return [call for call in calls if call["outcome"] != "running"]
