"""Real servers go on when their store goes away in the middle of turns, or one of them is paused: nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.outages import Fault, Servers, Tally, killed, locked, outage, paused_server, stalled
from stores.kinds import KINDS, Kind

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
