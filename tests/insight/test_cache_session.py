"""A session tells what broke its prompt cache: over the real protocols, by item, to the cent."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from calls.test_ledger import PROVIDERS, Provider
from server.place import engine_of, listening
from windowpane.api.comparison import CacheReport
from windowpane.client import Client
from windowpane.insight.past import past_turn
from windowpane.local.pane import LocalPane
from windowpane.request.selector import FixedSelector
from windowpane.server.app import create_app
from windowpane.testing import World, drain
from wire.reply import WireReply
from wire.server import running

PRICES = "{input: 10, output: 0, cache_read: 1, cache_write: 12.5}"
LONG = "Say what you know and where you know it from. " * 200


def agent(model: str, cache: str) -> str:
    return f"model: {model}\nworking_context: false\ncache: {cache}\nprices: {{'{model}': {PRICES}}}\n"


async def broken(world: World, provider: Provider, cache: str, *replies: WireReply) -> CacheReport:
    """Return the report of a session of three turns, before the last of which a rule is edited. HTTP tells the same."""
    world.write("agent.yaml", agent(provider.model, cache))
    world.rule("a-brief", "Be brief.", include="always")
    world.rule("b-tone", "Be polite.", include="always")
    world.rule("c-sources", LONG, include="always")
    async with running(*map(provider.answer, replies)) as server:
        world.environ = provider.environ(server.url)
        engine = engine_of(world)
        async with listening(create_app(engine)) as url, Client(url) as client:
            pane = LocalPane(engine)
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, "Hello."))
            await drain(pane.turn(session.id, "Who are you?"))
            world.rule("b-tone", "Be very polite.", include="always")
            await drain(pane.turn(session.id, "What do you know?"))
            report = await pane.sessions.cache(session.id)
            assert report == await client.sessions.cache(session.id)
            return report


@pytest.mark.parametrize(
    ("name", "cache"), [("openai", "stable"), ("openai", "fresh"), ("responses", "stable"), ("anthropic", "stable")]
)
async def test_an_edited_rule_between_two_turns_is_named_and_priced_exactly(
    tmp_path: Path, name: str, cache: str
) -> None:
    provider, world = PROVIDERS[name], World(tmp_path / "agents")
    plain = name != "anthropic"
    third = WireReply(("Much.",), input_tokens=3000 if plain else 1, written_tokens=0 if plain else 2999)

    report = await broken(
        world,
        provider,
        cache,
        WireReply(("Hi.",), input_tokens=3000 if plain else 1, written_tokens=0 if plain else 2999),
        WireReply(("I am.",), input_tokens=3000 if plain else 100, cached_tokens=2816 if plain else 2900),
        third,
    )

    assert [call.broke is None for call in report.calls] == [True, True, False]
    broke = report.calls[2].broke
    assert broke is not None
    reason = "its text changed" + (" (re-base: the system prompt changed)" if cache == "stable" else "")
    assert (broke.item, broke.kind, broke.reason, broke.since) == ("rule:b-tone", "edited", reason, 2)
    paid = Decimal(10) if plain else Decimal("12.5")
    assert broke.cost_usd == broke.lost_tokens * (paid - 1) / 1_000_000
    assert 2000 < broke.lost_tokens < 3000
    edited = report.calls[2]
    used = (edited.read_tokens, edited.written_tokens, edited.plain_tokens)
    assert used == ((0, 0, 3000) if plain else (0, 2999, 1))
    assert [(item.name, item.breaks, item.lost_tokens, item.cost_usd) for item in report.blamed] == [
        ("rule:b-tone", 1, broke.lost_tokens, broke.cost_usd)
    ]


async def test_a_carried_item_that_leaves_breaks_the_prefix_and_the_re_base_says_why(tmp_path: Path) -> None:
    provider, world = PROVIDERS["openai"], World(tmp_path / "agents")
    world.write("agent.yaml", agent(provider.model, "stable"))
    world.rule("sources", LONG, include="agent")
    world.selector = FixedSelector({"Hello.": {"rule:sources": 0.9}})
    replies = [WireReply((f"Answer {n}. {LONG}",), input_tokens=5000) for n in (1, 2, 3)]
    async with running(*map(provider.answer, replies)) as server:
        world.environ = provider.environ(server.url)
        async with world.engine() as engine:
            pane = LocalPane(engine)
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, "Hello."))
            await drain(pane.turn(session.id, "Who are you?"))
            world.rule("sources", f"{LONG} Always.", include="agent")
            await drain(pane.turn(session.id, "What do you know?"))
            report = await pane.sessions.cache(session.id)
            rebase = (await past_turn(engine, session.id, 3)).context.rebase

    assert rebase is not None
    assert (rebase.code, rebase.reason) == ("item", "rule:sources was edited")
    first, second, third = (call.broke for call in report.calls)
    assert (first, second) == (None, None)
    assert third is not None
    assert third.reason == "it is not there any more (re-base: rule:sources was edited)"
