"""What is removed or cleared is gone: from the log, later requests and calls, summaries, and the files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from calls.test_ledger import PROVIDERS, Provider
from stores.kinds import KINDS, Kind
from windowpane.api.replay import WhatIf
from windowpane.context.events import Erased, FetchedAdded, FetchedCleared, MessageAdded, MessageRemoved, SummaryMade
from windowpane.context.fetched import Fetched
from windowpane.context.ids import SessionId
from windowpane.context.messages import UserMessage
from windowpane.errors import ModelRejectedError, SessionBusyError
from windowpane.fetch.pages import Pages
from windowpane.local.pane import LocalPane
from windowpane.memory.recent import MOST_MESSAGES
from windowpane.models.scripted import Call, Reply
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.index import ItemIndex
from windowpane.stores.packing import unpack
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool
from wire.reply import WireCall, WireReply
from wire.server import running

LONG = 'The vault of "Zürich" opens with\nquartzbadger, and with no other word than that.'
SHORT = "zephyrlock 4711"
PAGE = "The sapphireheron nests on the third island.\n" + "It is shy and small. " * 60 + "\nEnd of emberfinch."
FOUND = "The cobaltlynx was seen at noon by two walkers near the coast."
WORDS = ("quartzbadger", "zephyrlock", "sapphireheron", "emberfinch")


def found_in(place: Path) -> list[str]:
    """Return the planted words that stand in any byte of the files, or in a text that is packed there."""
    written = b"".join(file.read_bytes() for file in place.glob("a.db*"))
    with closing(sqlite3.connect(place / "a.db")) as db:
        for (body,) in db.execute("SELECT body FROM text WHERE live"):
            packed = body if isinstance(body, bytes) else body.encode()
            with suppress(Exception):
                written += unpack(packed)
    return [word for word in WORDS if word.encode() in written]


@pytest.fixture
def world(world: World) -> World:
    """An agent with a reference that some messages need."""
    world.selector = HybridSelector(ItemIndex(None))
    world.reference("islands", "There are three islands off the coast.", include="agent", description="Islands")
    return world


async def everything(pane: LocalPane, session: SessionId) -> str:
    """Return every answer about a session as one text."""
    view = await pane.sessions.get(session)
    told: list[object] = [view, await pane.sessions.messages(session), await pane.sessions.export(session)]
    told += [await pane.sessions.statistics(session), await pane.sessions.calls(session)]
    told += [await pane.turns.receipts(session), await pane.sessions.cache(session), await pane.sessions.xray(session)]
    told += [await pane.sessions.fetched(session), await pane.sessions.summary(session)]
    told += [await pane.analytics.dashboard(), await pane.preview(session, "And now?")]
    for turn in range(1, view.turn_count + 1):
        told += [await pane.turns.get(session, turn), await pane.turns.calls(session, turn)]
        for number, _ in enumerate((await pane.turns.calls(session, turn)).calls, 1):
            told.append(await pane.turns.call(session, turn, number))
        told += [await pane.turns.usage(session, turn), await pane.turns.use(session, turn)]
        for ask in (
            pane.turns.request,
            pane.turns.context,
            pane.turns.rebuild,
            pane.turns.debug,
            pane.turns.explanations,
            partial(pane.turns.compare, other=1),
            partial(pane.turns.replay, what_if=WhatIf(search={"floor": 0.1}, query="islands")),
        ):
            told.append(await ask(session, turn))
    return repr(told)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.parametrize(
    ("settings", "more"),
    [("cache: fresh\nmemory: {messages: 8}", 9), ("cache: stable", MOST_MESSAGES)],
    ids=["fresh", "stable"],
)
@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
async def test_removed_messages_and_cleared_pages_are_in_no_file_and_in_no_answer(
    world: World, tmp_path: Path, provider: Provider, settings: str, more: int
) -> None:
    world.write("agent.yaml", f"model: {provider.model}\nworking_context: false\n{settings}\n")
    world.toolbox.put("files", [tool("read", "The file is empty.", permission="not_required")])
    world.store = SQLiteStore(tmp_path / "a.db")
    summary = {"overview": "The vault opens with quartzbadger.", "current_topic": "vaults"}
    call = WireCall("c1", "files__read", (json.dumps({"path": "a"}),))
    answers = [WireReply((f"Noted {number}.",)) for number in range(2)]
    answers += [WireReply(calls=(call,)), WireReply(("Read it.",))]
    answers += [WireReply(calls=(WireCall("c2", "record_summary", (json.dumps(summary),)),)), WireReply(("At last.",))]
    async with running(*map(provider.answer, answers)) as server:
        world.environ = provider.environ(server.url)
        async with world.pane(pages=Pages()) as pane:
            engine = pane.engine
            session = (await engine.sessions.create()).id
            await drain(engine.turn(session, "Hello there."))
            long, short = [
                (await engine.conversations.add(session, MessageAdded(role="user", content=text))).seq
                for text in (LONG, SHORT)
            ]
            await engine.fetched.push(session, "https://example.org/heron", title="Herons", text=PAGE)
            await drain(engine.turn(session, "And what about that?"))
            await drain(engine.turn(session, "Read the file as well."))
            for number in range(more):
                added = MessageAdded(role="user", content=f"Shade {number} of the wall in the hall is blue.")
                await engine.conversations.add(session, added)
            state = await engine.conversations.sum_up(session)
            assert state.summary is not None
            assert state.summary.overview == summary["overview"]
            await drain(engine.turn(session, "What is the state of things?"))
            before = await everything(pane, session)
            assert found_in(tmp_path) == list(WORDS)
            assert [word for word in WORDS if word in before] == list(WORDS)

            removed = [await pane.sessions.remove_message(session, seq) for seq in (long, short)]
            cleared = await pane.sessions.clear_fetched(session)

            assert found_in(tmp_path) == []
            told = await everything(pane, session)
            assert [word for word in WORDS if word in told] == []
            assert [each.remains for each in removed] == [(), ()]
            assert set(cleared.remains) == {
                f"turn {turn} names a page as a source of its answer, by title and address" for turn in (2, 3, 4)
            }
            assert removed[-1].summary is None
            request = await pane.turns.request(session, 3)
            assert [m.part for m in request.messages if m.erased] == ["history", "history", "fetched"]
            assert (await pane.turns.call(session, 3, 1)).erased
            assert not (await pane.turns.call(session, 1, 1)).erased
            copy = await pane.sessions.import_(await pane.sessions.export(session))
            fork = await pane.sessions.fork(session, turn=4)
            assert [(await pane.sessions.get(each.id)).turn_count for each in (copy, fork)] == [4, 3]
    assert found_in(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
async def test_no_store_keeps_a_removed_text(world: World, tmp_path: Path, kind: Kind) -> None:
    world.store = kind.open(kind.fresh(tmp_path))
    world.says("Noted.", "Yes.")
    async with world.pane(pages=Pages()) as pane:
        session = (await pane.engine.sessions.create()).id
        seq = (await pane.engine.conversations.add(session, MessageAdded(role="user", content=LONG))).seq
        await pane.engine.fetched.push(session, "https://example.org/heron", text=PAGE)
        await drain(pane.engine.turn(session, "What opens the vault?"))
        before = await everything(pane, session)
        await pane.sessions.remove_message(session, seq)
        await pane.sessions.clear_fetched(session)
        after = await everything(pane, session)

    assert [word in before for word in WORDS] == [True, False, True, True]
    assert [word in after for word in WORDS] == [False] * 4


async def test_what_others_said_stays_and_the_answer_says_so(world: World) -> None:
    world.says(f"As you say: {LONG}", "Yes.")
    async with world.pane(pages=Pages()) as pane:
        session = (await pane.engine.sessions.create()).id
        first, second = [
            (await pane.engine.conversations.add(session, MessageAdded(role="user", content=LONG))).seq for _ in "ab"
        ]
        await drain(pane.engine.turn(session, "Say it again."))
        removed = await pane.sessions.remove_message(session, second)
        request = await pane.turns.request(session, 1)
        messages = await pane.engine.conversations.messages(session)

    assert removed.remains == (
        f"message {first} has the same words, and is kept",
        "the answer of turn 1 has the same words, and is kept",
    )
    assert [message.erased for message in request.messages if message.part == "history"] == [False, False]
    assert [m.content for m in messages if isinstance(m, UserMessage)] == [LONG, "Say it again."]


async def test_what_still_names_the_address_of_a_page_is_told(world: World) -> None:
    world.says("Hello.", Reply(error=ModelRejectedError("no")), "Done.")
    address = "https://example.org/heron?q=a"
    async with world.pane(pages=Pages()) as pane:
        session = (await pane.engine.sessions.create()).id
        await drain(pane.engine.turn(session, "Hello."))
        await pane.engine.fetched.push(session, address, title="Herons", text=PAGE)
        await drain(pane.engine.turn(session, "What was seen?"))
        await drain(pane.engine.turn(session, "And then?"))
        cleared = await pane.sessions.clear_fetched(session)
        documents = [await pane.turns.get(session, turn) for turn in (1, 2, 3)]

    assert cleared.remains == (
        "the record of turn 2 names a page by its address",
        "turn 3 names a page as a source of its answer, by title and address",
    )
    assert [address in repr(each) for each in documents] == [False, True, True]


async def test_one_kind_is_cleared_out_of_what_came_in_together(world: World) -> None:
    world.says("Noted.", "Yes.")
    page = Fetched(kind="page", url="https://example.org/heron", content=PAGE)
    result = Fetched(kind="web_search", url="https://example.org/lynx", content=FOUND, query="lynx")
    async with world.pane(pages=Pages()) as pane:
        session = (await pane.engine.sessions.create()).id
        await pane.engine.fetched.add(session, [page, result])
        await drain(pane.engine.turn(session, "What was seen?"))
        cleared = await pane.sessions.clear_fetched(session, "page")
        state = await pane.engine.sessions.get(session)
        log = [entry.event for entry in await pane.engine.store.read(session)]
        told = await everything(pane, session)

    assert [view.url for view in cleared.items] == [result.url]
    assert [held.item for held in state.fetched] == [result]
    assert isinstance(log[1], Erased)
    assert [type(event) for event in log[-2:]] == [FetchedCleared, FetchedAdded]
    assert ("sapphireheron" in told, "cobaltlynx" in told) == (False, True)


async def test_a_text_that_a_waiting_turn_was_given_is_not_erased_under_it(world: World) -> None:
    world.toolbox.put("files", [tool("read", "Empty.", permission="required")])
    world.says(Reply(calls=(Call("files__read", "{}", "c1"),)), "Done.")
    async with world.pane() as pane:
        session = (await pane.engine.sessions.create()).id
        seq = (await pane.engine.conversations.add(session, MessageAdded(role="user", content=LONG))).seq
        await drain(pane.engine.turn(session, "Read the file."))
        with pytest.raises(SessionBusyError):
            await pane.sessions.remove_message(session, seq)
        request = await pane.turns.request(session, 1)
        assert LONG in [message.content for message in request.messages]


async def test_the_summary_before_the_one_that_is_dropped_holds_again(world: World) -> None:
    world.write("agent.yaml", "memory: {messages: 8}\n")
    async with world.pane() as pane:
        session = (await pane.engine.sessions.create()).id
        for number in range(40):
            await pane.engine.conversations.add(
                session, MessageAdded(role="user", content=f"Shade {number} of the wall is blue.")
            )
            await pane.engine.conversations.sum_up(session)
        log = await pane.engine.store.read(session)
        made = [entry.event.summary for entry in log if isinstance(entry.event, SummaryMade)]
        assert len(made) > 2
        seq = made[-1].through_seq
        removed = await pane.sessions.remove_message(session, seq)
        told = [entry.event for entry in await pane.engine.store.read(session)]

    assert removed.summary == made[-2]
    assert [event for event in told if isinstance(event, SummaryMade)] == [
        SummaryMade(summary=each) for each in made[:-1]
    ] + [SummaryMade(summary=made[-2])]
    assert isinstance(told[-2], MessageRemoved)
