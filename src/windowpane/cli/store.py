"""`windowpane store`: move sessions between stores."""

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from windowpane.cli.failing import in_one_line
from windowpane.cli.screen import Screen, counted
from windowpane.errors import InvalidInputError
from windowpane.stores.copy import Copied, Step, copy_store
from windowpane.wiring import open_store

STEPS: dict[Step, str] = {"copy": "copying", "verify": "comparing"}


def copy(source: str, target: str, *, as_json: bool) -> int:
    """Copy every session from one store to another and compare them; return the exit code.

    Raises:
        InvalidInputError: it is the same store twice, or one that cannot be copied from or to.
        InvalidSettingError: a URL names no store that there is.
    """
    if source == target:
        raise InvalidInputError("FROM and TO are the same store; name two")
    for url in (source, target):
        if url.startswith("memory:"):
            raise InvalidInputError("memory: is empty at first and gone at the end; name a store that stays")
    scheme, _, path = source.partition(":///")
    if scheme == "sqlite" and not Path(path).exists():
        raise InvalidInputError(f"there is no file {path}; FROM must be there already")
    screen = Screen(remarks_aside=as_json)
    copied = anyio.run(_copied, source, target)
    for error in copied.refused:
        screen.fail(in_one_line(error))
    if as_json:
        counts = {
            "sessions": copied.sessions,
            "copied": copied.copied,
            "events": copied.events,
            "verified": copied.verified,
            "refused": [error.session_id for error in copied.refused],
            "behind": list(copied.behind),
            "others": copied.others,
        }
        screen.write(json.dumps(counts, indent=2) + "\n")
    else:
        _draw(screen, copied)
    return 0 if copied.complete else 1


async def _copied(source: str, target: str) -> Copied:
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("sessions"),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    task = shown.add_task("opening", total=None)

    def on_progress(step: Step, done: int, total: int) -> None:
        shown.update(task, description=STEPS[step], completed=done, total=total)

    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(open_store(source))
        theirs = await stack.enter_async_context(open_store(target))
        stack.enter_context(shown)
        return await copy_store(ours, theirs, on_progress)


def _draw(screen: Screen, copied: Copied) -> None:
    screen.line(
        f"{counted(copied.copied, 'session')} copied with {counted(copied.events, 'event')}; "
        f"{copied.verified:,} of {counted(copied.sessions, 'session')} verified to be the same in both stores.",
        "bold" if copied.complete else "",
    )
    if copied.behind:
        screen.line(
            f"{counted(len(copied.behind), 'session')} went on meanwhile: stop the workers that write to FROM and copy "
            "again, which copies only what is new."
        )
    if copied.others:
        screen.line(f"TO has {counted(copied.others, 'other session')}, left alone.")
