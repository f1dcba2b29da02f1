"""What is lost when things are killed: every fault of the tests, many times, on every store that processes share.

Real writers in processes of their own note what they try and what they are told; a checker compares their notes with
the log (`tests/stores/checker.py`). Lost, duplicated and other faults must be 0 everywhere. Run it with
`.venv/bin/python bench/faults.py [TIMES] [STORE…]`; TIMES is how often each thing is killed or cut, 20 unless given.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

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
HEAD = ("store", "fault", "kills", "tried", "acknowledged", "lost", "duplicated", "other faults")
WIDTHS = (14, 31, 6, 8, 13, 5, 11, 13)


async def main(times: int, names: list[str]) -> int:
    """Print one row for each store and fault as it is measured, and return how many faults there were."""
    print_row(*HEAD)
    faults = 0
    for kind in KINDS:
        if not kind.shared or (names and kind.name not in names):
            continue
        for fault, scenario in (OF_EVERY_STORE | (OF_SERVERS if kind.serve else {})).items():
            with TemporaryDirectory() as directory:
                outcome = await scenario(kind, Path(directory), times)
            verdict = outcome.verdict
            found = {name: len(those) for name, those in verdict.faults.items()}
            lost, duplicated = found.pop("lost", 0), found.pop("duplicated", 0)
            others = sum(found.values())
            row = (kind.name, fault, outcome.kills, verdict.tried, verdict.acknowledged, lost, duplicated, others)
            print_row(*row)
            faults += lost + duplicated + others
    return faults


def print_row(*cells: str | int) -> None:
    texts = [f"{cell:,}" if isinstance(cell, int) else cell for cell in cells]
    aligned = [
        text.ljust(width) if column < 2 else text.rjust(width)
        for column, (text, width) in enumerate(zip(texts, WIDTHS, strict=True))
    ]
    print("".join(aligned).rstrip(), flush=True)


def _place(kind: Kind, directory: Path) -> Place:
    return Place(kind, kind.fresh(directory))


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdecimal()]
    stores = [argument for argument in sys.argv[1:] if not argument.isdecimal()]
    sys.exit(1 if anyio.run(main, numbers[0] if numbers else 20, stores) else 0)
