"""A prompt that goes on: what entered stays where it entered, and each request begins with the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windowpane.context.carried import Additions
from windowpane.context.items import Item, rule_ref
from windowpane.context.messages import Message
from windowpane.context.request import Request, RequestMessage
from windowpane.engine import Engine
from windowpane.insight.past import past_turn
from windowpane.insight.replay import rebuilt
from windowpane.models.base import CacheRules
from windowpane.request.selector import FixedSelector, Selection
from windowpane.request.stable.carry import array_of, is_volatile
from windowpane.testing import Call, Reply, ScriptedModel, World, drain, tool

STABLE = "model: scripted:test\nworking_context: false\nfinders: false\ncache: stable\n"


def stable_world(folder: Path, *, additions: Additions | None = None, turns: int = 20) -> World:
    world = World(folder)
    world.write("agent.yaml", STABLE)
    rules = CacheRules(read=0.1, write=1.25, additions=additions)
    world.model = ScriptedModel("test", [Reply(f"Answer {n}.") for n in range(1, turns + 1)], cache_rules=rules)
    return world


async def requests_of(engine: Engine, session_id: Any, turns: int) -> list[Request]:
    return [(await past_turn(engine, session_id, turn)).request for turn in range(1, turns + 1)]


def kept(request: Request) -> list[tuple[Any, ...]]:
    """Return what the next request begins with, as the model reads it."""
    return [_read(message) for message in request.messages if not is_volatile(message)]


def _read(message: RequestMessage) -> tuple[Any, ...]:
    calls = tuple((call.id, call.offered_name, call.arguments) for call in message.tool_calls)
    return (message.role, message.content, calls, message.tool_call_id, message.tools_added)


def goes_on(before: Request, after: Request) -> bool:
    first, second = kept(before), kept(after)
    return second[: len(first)] == first and array_of(before) == array_of(after)


@pytest.mark.spec("S0.15", "S0.16", "S0.18", "S0.19")
async def test_the_flow_example_has_the_same_items_and_lists_what_stands_beside_them(tmp_path: Path) -> None:
    world = stable_world(tmp_path)
    world.rule("A", include="always")
    world.rule("B", include="manual")
    world.rule("C", include="agent")
    world.reference("X", include="always")
    world.reference("Y", include="agent")
    world.selector = FixedSelector(
        {"How do I authenticate?": {"rule:C": 0.92}, "What's the error handling?": {"reference:Y": 0.87}}
    )

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.items.add(session.id, rule_ref("B"))
        await drain(engine.turn(session.id, "How do I authenticate?"))
        await drain(engine.turn(session.id, "What's the error handling?"))
        first, second = await requests_of(engine, session.id, 2)

    held = [("rule:A", "always", None), ("reference:X", "always", None), ("rule:B", "manual", None)]
    for request, selected in ((first, ("rule:C", "agent", 0.92)), (second, ("reference:Y", "agent", 0.87))):
        items = [(str(item.ref), item.include_mode, item.similarity_score) for item in request.context.items]
        assert items == [*held, selected]
    assert first.context.carried == ()
    assert [(str(item.ref), item.turn, item.reason) for item in second.context.carried] == [
        ("rule:C", 1, "named by the table")
    ]
    assert [(message.role, message.part, message.name) for message in second.messages] == [
        ("system", "core", "core"),
        ("system", "core", "boundary"),
        ("system", "rules", ""),
        ("system", "references", ""),
        ("user", "selected", "turn 1"),
        ("user", "history", second.messages[5].name),
        ("assistant", "history", second.messages[6].name),
        ("user", "selected", "turn 2"),
        ("user", "message", ""),
    ]
    assert "message of turn 1" in second.messages[4].content
    assert goes_on(first, second)
    assert second.context.rebase is None
    assert second.context.prefix is not None
    assert second.context.prefix.expected_tokens == first.context.prefix.tokens if first.context.prefix else 0


@pytest.mark.parametrize("additions", [None, "by_reference", "with_definitions"])
async def test_tools_stay_and_only_lists_without_additions_break(tmp_path: Path, additions: Additions | None) -> None:
    world = stable_world(tmp_path, additions=additions)
    world.toolbox.put("files", [tool("read"), tool("find", include="agent"), tool("grep", include="agent")])
    world.selector = FixedSelector(
        {"one": {"files:find": 0.9}, "two": {"files:grep": 0.9}, "three": {"files:find": 0.9}}
    )

    async with world.engine() as engine:
        session = await engine.sessions.create()
        for message in ("one", "two", "three"):
            await drain(engine.turn(session.id, message))
        first, second, third = await requests_of(engine, session.id, 3)

    names = [[each.offered_name for each in request.tools] for request in (first, second, third)]
    assert names == [
        ["files__read", "files__find"],
        ["files__read", "files__find", "files__grep"],
        ["files__read", "files__find", "files__grep"],
    ]
    assert [[str(item.ref) for item in request.context.carried] for request in (first, second, third)] == [
        [],
        ["files:find"],
        ["files:find", "files:grep"],
    ]
    assert [(str(item.ref), item.since) for item in third.context.items] == [("files:read", None), ("files:find", 1)]
    added = [[message.tools_added for message in r.messages if message.tools_added] for r in (first, second, third)]
    if additions is None:
        assert added == [[], [], []]
        assert [r.context.rebase and r.context.rebase.code for r in (first, second, third)] == [None, "tools", None]
    else:
        one, two = ("files__find",), ("files__grep",)
        assert added == [[one], [one, two], [one, two]]
        assert [r.context.rebase for r in (first, second, third)] == [None, None, None]
        assert goes_on(first, second)
    assert goes_on(second, third)
    declared = [tuple(each.offered_name for each in request.declared) for request in (first, second)]
    assert declared == ([("files__grep",), ()] if additions == "by_reference" else [(), ()])


class Asked(FixedSelector):
    """Remembers by which settings of tools it was asked to select."""

    def __init__(self) -> None:
        super().__init__({"one": {"files:find": 0.9}})
        self.tools: list[Any] = []

    async def select(
        self, message: str, recent: Sequence[Message], candidates: Sequence[Item], settings: Mapping[str, Any]
    ) -> Selection:
        self.tools.append(settings.get("tools"))
        return await super().select(message, recent, candidates, settings)


@pytest.mark.parametrize(
    ("additions", "read", "own", "asked"),
    [
        ("by_reference", 0.1, "", [None]),
        ("with_definitions", 0.1, "", [{"floor": 0.1, "top_n": 6, "share_of_best": 0.35}]),
        # An idle tool leaves at once here, and must come back.
        ("with_definitions", 0.5, "", [{"floor": 0.12, "top_n": 7, "share_of_best": 0.3}]),
        (
            None,
            0.1,
            "",
            # The first request writes its list anyway, and so takes more along.
            [{"floor": 0.35, "top_n": 1}, {"floor": 0.02, "top_n": 20, "share_of_best": 0.0}],
        ),
        ("with_definitions", 0.1, "search: {tools: {top_n: 3}}\n", [{"top_n": 3}]),
    ],
)
async def test_on_how_weak_evidence_a_tool_enters_follows_from_what_entering_and_carrying_cost(
    tmp_path: Path, additions: Additions | None, read: float, own: str, asked: list[Any]
) -> None:
    world = stable_world(tmp_path, additions=additions)
    world.model = ScriptedModel("test", [Reply("Done.")], cache_rules=CacheRules(read=read, additions=additions))
    world.write("agent.yaml", STABLE + own)
    world.toolbox.put("files", [tool("read"), tool("find", include="agent")])
    world.selector = selector = Asked()

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "one"))

    assert selector.tools == asked


@pytest.mark.parametrize(
    "leave",
    ["edited", "disabled", "deleted", "removed", "manual"],
)
async def test_a_carried_item_that_may_not_be_sent_leaves_with_the_next_request(tmp_path: Path, leave: str) -> None:
    world = stable_world(tmp_path)
    file = world.rule("C", "Say yes.", include="agent")
    world.selector = FixedSelector({"one": {"rule:C": 0.9}})

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "one"))
        if leave == "edited":
            world.rule("C", "Say no.", include="agent")
        elif leave == "disabled":
            world.rule("C", "Say yes.", include="agent", enabled="false")
        elif leave == "deleted":
            file.unlink()
        elif leave == "removed":
            await engine.items.exclude(session.id, rule_ref("C"))
        else:
            await engine.items.add(session.id, rule_ref("C"))
        await drain(engine.turn(session.id, "two"))
        _, second = await requests_of(engine, session.id, 2)

    assert second.context.carried == ()
    assert [(str(item.ref), item.turn) for item in second.context.dropped] == [("rule:C", 1)]
    assert second.context.rebase is not None
    assert second.context.rebase.code == "item"
    assert second.context.rebase.forced
    sent = "\n".join(message.content for message in second.messages)
    assert sent.count("Say yes.") == (leave == "manual")
    assert "Say no." not in sent


async def test_a_tool_whose_server_is_gone_or_that_is_forbidden_leaves(tmp_path: Path) -> None:
    world = stable_world(tmp_path, additions="with_definitions")
    world.toolbox.put("files", [tool("find", include="agent")])
    world.toolbox.put("web", [tool("get", include="agent")])
    world.selector = FixedSelector({"one": {"files:find": 0.9, "web:get": 0.8}})

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "one"))
        world.toolbox.put("files", [tool("find", include="agent", permission="forbidden")])
        await drain(engine.turn(session.id, "two"))
        _, second = await requests_of(engine, session.id, 2)

    assert [(str(item.ref), item.reason) for item in second.context.dropped] == [
        ("files:find", "was forbidden by the agent")
    ]
    assert [tool.offered_name for tool in second.tools] == ["web__get"]


async def test_page_and_time_stand_behind_the_history_and_are_not_kept(tmp_path: Path) -> None:
    world = stable_world(tmp_path)

    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"time_zone": "Europe/Paris"})
        await engine.sessions.update(session.id, {"current_url": "https://example.org/a"})
        await drain(engine.turn(session.id, "one"))
        await engine.sessions.update(session.id, {"current_url": "https://example.org/b"})
        await drain(engine.turn(session.id, "two"))
        first, second = await requests_of(engine, session.id, 2)

    assert [(message.role, message.part) for message in second.messages][2:] == [
        ("user", "history"),
        ("assistant", "history"),
        ("user", "user_context"),
        ("user", "time_context"),
        ("user", "message"),
    ]
    assert second.context.rebase is None
    assert goes_on(first, second)


async def test_a_change_of_the_system_prompt_is_a_recorded_re_base(tmp_path: Path) -> None:
    world = stable_world(tmp_path)

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "one"))
        await engine.sessions.update(session.id, {"system_prompt": "Rhyme."})
        await drain(engine.turn(session.id, "two"))
        await drain(engine.turn(session.id, "three"))
        _, second, third = await requests_of(engine, session.id, 3)

    assert second.context.rebase is not None
    assert second.context.rebase.code == "system"
    assert second.context.rebase.price_tokens > 0
    assert third.context.rebase is None


async def test_tools_that_the_model_asks_for_stay_where_they_came_in(tmp_path: Path) -> None:
    world = stable_world(tmp_path, additions="with_definitions")
    world.write("agent.yaml", STABLE.replace("finders: false", "finders: true"))
    world.toolbox.put("files", [tool("find", include="agent", permission="not_required")])
    asks = Reply(calls=(Call("windowpane__find_tools", '{"query": "find files"}', "c1"),))
    calls = Reply(calls=(Call("files__find", "{}", "c2"),))
    said = [asks, calls, Reply("Done."), Reply("More.")]
    world.model = ScriptedModel("test", said, cache_rules=CacheRules(additions="with_definitions"))
    world.selector = FixedSelector({"find files": {"files:find": 0.9}})

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "one"))
        await drain(engine.turn(session.id, "two"))
        state = await engine.sessions.get(session.id)

    calls_made = [[_read(message) for message in call.messages] for call in world.model.calls]
    for before, after in pairwise(calls_made):
        assert after[: len(before)] == before
    assert [message[4] for message in calls_made[-1] if message[4]] == [("files__find",)]
    assert [(str(item.ref), item.step, item.used) for item in state.carried.items] == [("files:find", 1, 1)]


async def test_a_list_of_tools_that_changes_in_mid_turn_is_a_re_base_with_reason_and_price(tmp_path: Path) -> None:
    world = stable_world(tmp_path)
    world.write("agent.yaml", STABLE.replace("finders: false", "finders: true"))
    world.toolbox.put("files", [tool("find", include="agent", permission="not_required")])
    asks = Reply(calls=(Call("windowpane__find_tools", '{"query": "find files"}', "c1"),))
    rules = CacheRules(read=0.1, write=1.25, input_usd=0.000002)
    world.model = ScriptedModel("test", [asks, Reply("Done."), Reply("More.")], cache_rules=rules)
    world.selector = FixedSelector({"find files": {"files:find": 0.9}})

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "one"))
        await drain(engine.turn(session.id, "two"))
        first, second = [(await past_turn(engine, session.id, turn)).request.context for turn in (1, 2)]

    rebase = first.rebase
    assert rebase is not None
    assert (rebase.code, rebase.reason) == ("tools", "the model asked for tools, and the list of tools changed")
    assert rebase.rewritten_tokens > 0
    assert rebase.price_tokens == pytest.approx(1.15 * rebase.rewritten_tokens, abs=0.06)
    assert rebase.price_usd == pytest.approx(rebase.price_tokens * 0.000002)
    # The next request goes on with the list as the model had it.
    assert second.rebase is None


MESSAGES = st.sampled_from(["a", "b", "c", "d", "  a\n", "hello"])
SELECTED = st.dictionaries(
    st.sampled_from(["rule:R1", "rule:R2", "reference:F1", "reference:F2", "files:t1", "files:t2", "files:t3"]),
    st.floats(0.3, 0.99),
    max_size=4,
)
CHANGES = st.sampled_from(["", "", "", "edit", "zone", "override", "model"])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    additions=st.sampled_from([None, "by_reference", "with_definitions"]),
    table=st.fixed_dictionaries(dict.fromkeys(("a", "b", "c", "d", "  a\n", "hello"), SELECTED)),
    turns=st.lists(st.tuples(MESSAGES, CHANGES), min_size=2, max_size=7),
)
async def test_outside_a_re_base_each_request_goes_on_with_the_last_one(
    tmp_path_factory: pytest.TempPathFactory,
    additions: Additions | None,
    table: dict[str, dict[str, float]],
    turns: list[tuple[str, str]],
) -> None:
    world = stable_world(tmp_path_factory.mktemp("agents"), additions=additions)
    for name in ("R1", "R2"):
        world.rule(name, f"Rule {name} begins.", include="agent")
    for name in ("F1", "F2"):
        world.reference(name, f"Reference {name} begins.", include="agent")
    world.toolbox.put("files", [tool("base"), *(tool(f"t{n}", include="agent") for n in (1, 2, 3))])
    world.selector = FixedSelector(table)

    async with world.engine() as engine:
        session = await engine.sessions.create()
        for number, (message, change) in enumerate(turns):
            if change == "edit":
                world.rule("R1", f"Rule R1 was edited in turn {number}.", include="agent")
            elif change == "zone":
                await engine.sessions.update(session.id, {"time_zone": "Asia/Tokyo"})
            elif change == "override":
                await engine.sessions.update(session.id, {"system_prompt": f"Override {number}."})
            await drain(engine.turn(session.id, message))
        requests = await requests_of(engine, session.id, len(turns))
        again = [rebuilt(await past_turn(engine, session.id, turn + 1)) for turn in range(len(turns))]

    assert all(each.identical for each in again)
    for request, (message, _) in zip(requests, turns, strict=True):
        _is_lawful(request, message)
    for before, after in pairwise(requests):
        rebase = after.context.rebase
        assert goes_on(before, after) if rebase is None else rebase.code in ("item", "system", "tools")
        assert rebase is None or rebase.code != "tools" or additions is None


def _is_lawful(request: Request, message: str) -> None:
    """Check what holds of every stable request by itself."""
    assert request.messages[-1].content == message
    assert [m.part for m in request.messages].count("message") == 1
    sent = "\n".join(m.content for m in request.messages)
    for name in ("R1", "R2"):
        assert sent.count(f"## {name}\n") <= 1
    names = [each.offered_name for each in request.tools]
    assert len(names) == len(set(names))
    standing = {item.ref for item in request.context.carried}
    entering = [item for item in request.context.items if item.include_mode == "agent" and item.since is None]
    assert not standing & {item.ref for item in entering if item.sent}
    roles = [m.role for m in request.messages if not m.tools_added]
    assert "system" not in roles[roles.count("system") :]


async def test_what_stands_in_the_prompt_since_an_earlier_turn_is_told_apart_and_read_like_what_was_selected(
    tmp_path: Path,
) -> None:
    world = stable_world(tmp_path)
    world.reference("gouda", "Gouda ripens in a cellar for thirty months.", include="agent")
    world.selector = FixedSelector({"How does it ripen?": {"reference:gouda": 0.9}})
    replies = [Reply("In a cellar."), Reply("As I said: it ripens in a cellar for thirty months.")]
    world.model = ScriptedModel("test", replies, cache_rules=CacheRules(read=0.1, write=1.25))
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        await pane.ask(session, "How does it ripen?")
        await pane.ask(session, "Hm?")
        receipts = await pane.turns.receipts(session)
        sent = await pane.turns.item(session, 2, "reference:gouda")
        uses = await pane.turns.use(session, 2)

    told = [[(item.name, item.sent, item.carried) for item in receipt.items] for receipt in receipts.turns]
    assert told == [[("gouda", True, False)], [("gouda", True, True)]]
    assert receipts.turns[1].left_out == 0
    assert sent.text == "Gouda ripens in a cellar for thirty months."
    assert (sent.item.since, sent.item.reason) == (1, "here since turn 1: named by the table")
    assert [(str(use.ref), use.verdict, use.how) for use in uses] == [("reference:gouda", "used", "quoted")]
