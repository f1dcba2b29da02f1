"""What calls cost: at the agent's own prices where it sets them, each token at the price of its place."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from windowpane.agents.folder import FolderAgents
from windowpane.context.calls import ModelPrice
from windowpane.context.events import SummaryMade
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.testing import World, drain
from wire import anthropic_messages, openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running

PRICES = "prices:\n  openai:own-model: {input: 2, output: 10, cache_read: 0.5}\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents")
    world.write("agent.yaml", f"model: openai:own-model\nworking_context: false\nmemory: {{messages: 8}}\n{PRICES}")
    return world


async def test_every_view_prices_a_self_hosted_model_as_its_agent_says_and_tells_what_is_not_known(
    world: World,
) -> None:
    summary = {"overview": "The user lists shades of paint.", "current_topic": "paint"}
    written = WireReply(
        calls=(WireCall("c1", "record_summary", (json.dumps(summary),)),), input_tokens=900, output_tokens=50
    )
    answers = [
        openai_chat.problem(500, "not now"),
        *(openai_chat.answer(WireReply((f"Noted {n}.",), input_tokens=100, output_tokens=10)) for n in range(7)),
        openai_chat.answer(written),
    ]
    async with running(*answers) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            for number in range(7):
                await drain(pane.turn(session.id, f"Shade {number} of the wall in the hall."))
            async for entry in pane.engine.store.subscribe(SessionId(session.id), after=0):
                if isinstance(entry.event, SummaryMade):
                    break
            found = await pane.sessions.statistics(session.id)
            listed = await pane.sessions.calls(session.id)
            compared = await pane.turns.compare(session.id, 1, 2)
            while (board := await pane.analytics.dashboard()).behind:
                pass
            again = await pane.analytics.dashboard()

    usage = Usage(7 * 100 + 900, 7 * 10 + 50)
    cost = (usage.input_tokens * 2 + usage.output_tokens * 10) / Decimal(1_000_000)
    assert (found.usage, found.cost_usd) == (usage, cost)
    assert (found.call_count, found.calls_without_usage, found.calls_without_price) == (9, 1, 0)
    assert (listed.usage, listed.cost_usd, listed.without_usage) == (usage, cost, 1)
    assert (compared.before.calls, compared.before.calls_without_usage, compared.before.usage) == (2, 1, Usage(100, 10))
    assert (compared.after.calls, compared.after.calls_without_usage, compared.cost_usd) == (1, 0, None)
    spent = board.spent
    assert (spent.calls, spent.input_tokens, spent.output_tokens, spent.cost_usd) == (9, *_sums(usage), cost)
    assert (spent.calls_without_usage, spent.calls_without_price, spent.turns_without_price) == (1, 0, 1)
    assert [(row.purpose, row.calls, row.input_tokens, row.calls_without_usage) for row in board.purposes] == [
        ("answer", 8, 700, 1),
        ("summary", 1, 900, 0),
    ]
    assert sum(row.cost_usd for row in board.purposes) == cost
    assert (again.spent, again.purposes) == (board.spent, board.purposes)


async def test_a_part_that_was_read_from_the_cache_costs_less_than_one_that_was_not(world: World) -> None:
    world.write(
        "agent.yaml",
        "model: anthropic:own\nworking_context: false\n"
        "prices: {'anthropic:own': {input: 10, output: 0, cache_read: 1, cache_write: 20}}\n",
    )
    world.rule("tone", "Be brief. " * 60, include="always")
    async with running() as server:
        world.environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            counted = (await pane.preview(session.id, "What is the time in Ulm?")).context
            used = counted.budget.used_tokens
            cached = sum(part.tokens for part in counted.parts if part.kind in ("core", "rules"))
            reply = WireReply(("Noon.",), input_tokens=used - cached, output_tokens=0, cached_tokens=cached)
            server.add(anthropic_messages.answer(reply))
            await drain(pane.turn(session.id, "What is the time in Ulm?"))
            board = await pane.analytics.dashboard()

    rules, message = (next(row for row in board.parts if row.kind == kind) for kind in ("rules", "message"))
    (rule,) = [row for row in board.items if row.ref.name == "tone"]
    assert rules.cost_usd == rules.tokens * Decimal(1) / 1_000_000
    assert message.cost_usd == message.tokens * Decimal(10) / 1_000_000
    assert rule.cost_usd == rule.tokens * Decimal(1) / 1_000_000
    assert board.spent.cost_usd == (cached * 1 + (used - cached) * 10) / Decimal(1_000_000)


def test_a_price_that_cannot_be_read_is_a_problem_and_the_others_stay(world: World) -> None:
    world.write(
        "agent.yaml",
        "prices:\n  openai:a: {input: 1, output: 2}\n  openai:b: {input: 1}\n  openai:c: cheap\n"
        "  openai:d: {input: -1, output: 2}\n  openai:e: {input: 1, output: 2, cached: 3}\n",
    )
    agent = FolderAgents(world.root).current("pane")

    assert agent.settings.prices == {
        "openai:a": ModelPrice(input=1, output=2),
        "openai:e": ModelPrice(input=1, output=2),
    }
    assert [problem.line for problem in agent.problems] == [3, 4, 5, 5, 6]


def _sums(usage: Usage) -> tuple[int, int]:
    return usage.input_tokens, usage.output_tokens
