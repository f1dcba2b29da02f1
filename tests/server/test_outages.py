"""Real servers go on when their store goes away in the middle of turns, or one of them is paused: nothing is lost."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from forked import forked
from server.outages import (
    Fault,
    Servers,
    Tally,
    killed,
    locked,
    outage,
    paused_server,
    replaced,
    serve_obediently,
    servers,
    stalled,
    unwritable,
)
from stores.kinds import KINDS, Kind
from windowpane.stores.sqlite.store import SQLiteStore
from wire import openai_chat
from wire.reply import WireReply

KIND = {kind.name: kind for kind in KINDS}


async def refused(servers: Servers) -> None:
    """Hold a fault until a message was refused."""
    await servers.refuse(1)


async def until_continued(servers: Servers) -> None:
    """Hold nothing: the messages that the other server answers take as long as the lease."""


def of_tries(tally: Tally) -> Tally:
    """Return a tally without how often a server refused."""
    return Tally(tally.tried, tally.acknowledged, 0, tally.lost, tally.doubled, tally.unfinished, tally.ended)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (KIND["postgres"], killed),
        (KIND["postgres"], stalled),
        (KIND["redis"], killed),
        (KIND["redis"], stalled),
        (KIND["sqlite"], locked),
        (KIND["sqlite"], unwritable),
        (KIND["sqlite"], replaced),
    ],
    ids=lambda given: given.name if isinstance(given, Kind) else given.__name__,
)
async def test_turns_go_on_when_the_store_comes_back_and_no_server_ends(
    kind: Kind, fault: Fault, tmp_path: Path
) -> None:
    tally = await outage(kind, tmp_path, fault, refused, turns=2, hasty=True)

    assert of_tries(tally) == Tally(tried=4, acknowledged=4, refused=0)


async def test_a_server_that_was_paused_finds_its_turns_closed_and_changes_nothing(tmp_path: Path) -> None:
    tally = await paused_server(KIND["sqlite"], tmp_path, locked, until_continued, turns=2)

    assert of_tries(tally) == Tally(tried=4, acknowledged=2, refused=0)


@pytest.mark.parametrize("there", [False, True], ids=["new", "there already"])
async def test_a_server_does_not_start_in_a_folder_that_it_cannot_write_and_says_what_to_do(
    tmp_path: Path, *, there: bool
) -> None:
    folder, database = tmp_path / "data", tmp_path / "data/windowpane.db"
    folder.mkdir()
    if there:
        async with SQLiteStore(database):
            pass
        database.chmod(0o444)
    before = sorted(folder.iterdir())
    folder.chmod(0o555)
    try:
        with forked(serve_obediently, folder, log=tmp_path / "refused.log") as refused:
            said, left = refused.said, sorted(folder.iterdir())
    finally:
        folder.chmod(0o755)
    if there:
        database.chmod(0o644)
    with forked(serve_obediently, folder, log=tmp_path / "served.log") as served:
        address = served.said

    why = "attempt to write a readonly database" if there else "Permission denied"
    assert said == f"{database}: {why}; allow this user to write the file and its directory"
    assert left == before
    assert address.startswith("http://")


ROOM_BYTES = 16 * 2**20


async def test_a_turn_that_takes_more_memory_than_there_is_fails_alone(tmp_path: Path) -> None:
    hello = openai_chat.answer(WireReply(text=("Hello.",)))
    endless = openai_chat.answer(WireReply(text=("word " * 12_000_000,)))
    async with servers(tmp_path, f"sqlite:///{tmp_path / 'sessions.db'}", how_many=1) as one:
        greedy, other = await one.session(), await one.session()
        one.wire.add(hello, endless, hello, hello)
        await one.insist(0, other, "before")
        pid = one.processes[0].pid
        limit_memory(pid, memory_bytes(pid) + ROOM_BYTES)
        body = {"content": "Talk on", "wait_s": 60}
        failed = (await one.clients[0].post(f"/api/sessions/{greedy}/messages", json=body)).json()
        await one.insist(0, other, "meanwhile")
        limit_memory(pid, resource.RLIM_INFINITY)
        await one.insist(0, greedy, "after")
        tally = await one.tally()

    message = "the server ran out of memory; ask for less, or give it more"
    assert (failed["outcome"], message in str(failed["messages"][-1])) == ("failed", True)
    assert of_tries(tally) == Tally(tried=3, acknowledged=3, refused=0)


def memory_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def limit_memory(pid: int, most_bytes: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_AS, (most_bytes, resource.RLIM_INFINITY))
