"""What is lost when things are killed or away: every fault of the tests, many times, on every store that is shared.

Real writers in processes of their own note what they try and what they are told; a checker compares their notes with
the log (`tests/stores/checker.py`). Then two real servers run turns while their store is away, or while one of them is
paused, for longer than a lease (`tests/server/outages.py`). Lost, duplicated and other faults must be 0 everywhere.

`.venv/bin/python bench/faults.py [TIMES] [STORE…] [--outages]`: TIMES is how often each thing is killed or cut, 20
unless given. With `--outages` only the outages are measured. To fill a disk takes root: without it that row fails.
"""

import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from server.outages import (
    Fault,
    Servers,
    Tally,
    full,
    killed,
    locked,
    outage,
    paused_server,
    replaced,
    stalled,
    unwritable,
)
from stores.faults import Outcome, cut_connections, killed_server, killed_writers, many_writers
from stores.kinds import KINDS, Kind
from stores.processes import Place

Scenario = Callable[[Kind, Path, int], Awaitable[Outcome]]

OF_EVERY_STORE: dict[str, Scenario] = {
    "2 processes write": lambda kind, directory, times: many_writers(_place(kind, directory), 2, times * 100),
    "8 processes write": lambda kind, directory, times: many_writers(_place(kind, directory), 8, times * 100),
    "writers killed -9": lambda kind, directory, times: killed_writers(_place(kind, directory), times),
}
OF_SERVERS: dict[str, Scenario] = {
    "server killed -9": killed_server,
    "server killed -9, without keys": lambda kind, directory, times: killed_server(kind, directory, times, "plain"),
    "connections cut": cut_connections,
    "connections cut, without keys": lambda kind, directory, times: cut_connections(kind, directory, times, "plain"),
}
Measure = Callable[[Kind, Path], Awaitable[Tally]]
AWAY_S = (5, 40, 120)
HEAD = ("store", "fault", "kills", "tried", "acknowledged", "lost", "duplicated", "other faults")
WIDTHS = (14, 31, 6, 8, 13, 5, 11, 13)
HEAD_OF_OUTAGES = ("store", "fault", "tried", "acknowledged", "refused", "lost", "duplicated", "unfinished", "ended")
WIDTHS_OF_OUTAGES = (14, 34, 6, 13, 8, 5, 11, 11, 6)


async def main(times: int, names: list[str], *, only_outages: bool) -> int:
    """Print one row for each store and fault as it is measured, and return how many faults there were."""
    kinds = [kind for kind in KINDS if kind.shared and (not names or kind.name in names)]
    faults = 0 if only_outages else await of_writers(kinds, times)
    return faults + await of_outages(kinds)


async def of_writers(kinds: list[Kind], times: int) -> int:
    """Kill and cut what writes."""
    print_row(HEAD, WIDTHS)
    faults = 0
    for kind in kinds:
        for fault, scenario in (OF_EVERY_STORE | (OF_SERVERS if kind.serve else {})).items():
            with TemporaryDirectory() as directory:
                outcome = await scenario(kind, Path(directory), times)
            verdict = outcome.verdict
            found = {name: len(those) for name, those in verdict.faults.items()}
            lost, duplicated = found.pop("lost", 0), found.pop("duplicated", 0)
            others = sum(found.values())
            row = (kind.name, fault, outcome.kills, verdict.tried, verdict.acknowledged, lost, duplicated, others)
            print_row(row, WIDTHS)
            faults += lost + duplicated + others
    return faults


async def of_outages(kinds: list[Kind]) -> int:
    """Take the store away from servers in the middle of turns, and pause a server for longer than its lease."""
    print_row(HEAD_OF_OUTAGES, WIDTHS_OF_OUTAGES)
    faults = 0
    for kind in kinds:
        for fault, measure in outages_of(kind).items():
            with TemporaryDirectory() as directory:
                tally = await measure(kind, Path(directory))
            wrong = tuple(map(len, (tally.lost, tally.doubled, tally.unfinished)))
            row = (kind.name, fault, tally.tried, tally.acknowledged, tally.refused, *wrong, tally.ended)
            print_row(row, WIDTHS_OF_OUTAGES)
            faults += sum(wrong) + tally.ended
    return faults


def outages_of(kind: Kind) -> dict[str, Measure]:
    """Return what is done to a store's servers, by name."""
    gone, held = ("database killed", "proxy stalls") if kind.serve else ("disk full", "file locked")
    away, stuck = (killed, stalled) if kind.serve else (full, locked)
    faults: list[tuple[str, Fault, int]] = [*((gone, away, seconds) for seconds in AWAY_S), (held, stuck, 40)]
    if not kind.serve:
        faults += [("files unwritable", unwritable, seconds) for seconds in AWAY_S]
        faults += [("file replaced", replaced, seconds) for seconds in AWAY_S]
    measured: dict[str, Measure] = {
        f"{name} for {seconds} s": partial(outage, fault=fault, hold=for_seconds(seconds))
        for name, fault, seconds in faults
    }
    place = killed if kind.serve else locked
    return measured | {"server paused for 60 s": partial(paused_server, fault=place, hold=for_seconds(60))}


def for_seconds(seconds: float) -> Callable[[Servers], Coroutine[Any, Any, None]]:
    """Return what holds a fault for so long."""

    async def hold(servers: Servers) -> None:
        await anyio.sleep(seconds)

    return hold


def print_row(cells: tuple[str | int, ...], widths: tuple[int, ...]) -> None:
    texts = [f"{cell:,}" if isinstance(cell, int) else cell for cell in cells]
    aligned = [
        text.ljust(width) if column < 2 else text.rjust(width)
        for column, (text, width) in enumerate(zip(texts, widths, strict=True))
    ]
    print("".join(aligned).rstrip(), flush=True)


def _place(kind: Kind, directory: Path) -> Place:
    return Place(kind, kind.fresh(directory))


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdecimal()]
    stores = [argument for argument in sys.argv[1:] if argument in {kind.name for kind in KINDS}]
    measure = partial(main, numbers[0] if numbers else 20, stores, only_outages="--outages" in sys.argv)
    sys.exit(1 if anyio.run(measure) else 0)
