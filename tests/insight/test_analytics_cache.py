"""Analytics of the prompt cache: what broke the beginning of prompts, and what providers read of it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from insight.counted import counted
from windowpane.api.analytics import Filters, RebaseRow
from windowpane.cli.commands.improve.analytics import draw_dashboard
from windowpane.cli.terminal import Screen
from windowpane.context.messages import Usage
from windowpane.insight.analytics.report import dashboard
from windowpane.insight.analytics.spreadsheet import as_csv
from windowpane.insight.analytics.update import Kept
from windowpane.insight.past import past_turn
from windowpane.models.base import CacheRules
from windowpane.request.selector import FixedSelector
from windowpane.testing import Reply, ScriptedModel, World, drain

KEPT = Kept(datetime(2026, 5, 1, 12, tzinfo=UTC), 0)


async def test_what_broke_the_prefix_is_counted_by_reason_and_item_with_what_it_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\nfinders: false\ncache: stable\n")
    world.write("prompts/core.md", "You answer questions about many things. " * 500)
    world.reference("guide", "Press the button.", include="agent")
    world.selector = FixedSelector({"one": {"reference:guide": 0.9}})
    read = (0, 4000, 4000, 0)
    replies = [Reply("Yes.", usage=Usage(5000, 10, tokens, 5000 - tokens)) for tokens in read]
    rules = CacheRules(read=0.1, write=1.25, input_usd=0.000002)
    world.model = ScriptedModel("test", replies, cache_rules=rules)

    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        await drain(engine.turn(session, "one"))
        await drain(engine.turn(session, "two"))
        world.reference("guide", "Press the other button.", include="agent")
        await drain(engine.turn(session, "three"))
        await drain(engine.turn(session, "four"))
        found = dashboard(await counted(engine), Filters(), KEPT)
        contexts = [(await past_turn(engine, session, turn)).request.context for turn in (1, 2, 3, 4)]

    rebase = contexts[2].rebase
    assert rebase is not None
    assert rebase.item == "reference:guide"
    cost = Decimal(round((rebase.price_usd or 0) * 10**9)) / 10**9
    assert cost > 0
    assert found.rebases == (
        RebaseRow(
            code="item", item="reference:guide", rebases=1, rewritten_tokens=rebase.rewritten_tokens, cost_usd=cost
        ),
    )
    expected = [context.prefix.expected_tokens if context.prefix else 0 for context in contexts]
    prefix = found.days[0].prefix
    assert prefix == found.prefix
    assert (prefix.rebases, prefix.rebase_usd) == (1, cost)
    assert (prefix.expected_tokens, prefix.read_tokens) == (sum(expected), sum(read))
    assert (prefix.collapses, prefix.missing_tokens) == (1, expected[3])
    assert as_csv(found, "rebases").splitlines()[0] == "code,item,rebases,rewritten_tokens,cost_usd"

    draw_dashboard(Screen(), found)
    told = capsys.readouterr().out
    assert (
        f"Read from caches: 8,000 of {sum(expected):,} tokens expected; the cache collapsed 1×, {expected[3]:,}" in told
    )
    assert "What broke the beginning of prompts:\n  reference:guide (item): 1×, " in told


async def test_what_stands_there_from_an_earlier_turn_is_counted_as_sent_and_not_as_selected(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\nfinders: false\ncache: stable\n")
    world.reference("guide", "Press the large green button beside the door.", include="agent")
    world.selector = FixedSelector({"one": {"reference:guide": 0.9}})
    answers = ("Fine.", "Fine.", "You press the large green button beside the door.")
    rules = CacheRules(read=0.1, write=1.25, input_usd=0.000002)
    world.model = ScriptedModel("test", [Reply(text) for text in answers], cache_rules=rules)

    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        for message in ("one", "two", "three"):
            await drain(engine.turn(session, message))
        found = dashboard(await counted(engine), Filters(), KEPT)
        contexts = [(await past_turn(engine, session, turn)).request.context for turn in (1, 2, 3)]

    (held,), (second,), (third,) = contexts[0].items, contexts[1].carried, contexts[2].carried
    (guide,) = found.items
    assert (guide.included, guide.by_mode) == (3, {"agent": 1, "carried": 2})
    assert guide.tokens == held.tokens + second.tokens + third.tokens
    assert (guide.selected, guide.used, guide.by_use) == (1, 1, {"quoted": 1})
    assert found.quality.selected == 1
    heading, line = (text.split(",") for text in as_csv(found, "items").splitlines())
    assert dict(zip(heading, line, strict=True))["by_mode_carried"] == "2"
