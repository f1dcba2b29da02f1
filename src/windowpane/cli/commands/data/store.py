"""`windowpane store`: copy sessions between stores, remove leftover objects, mend the list of sessions."""

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.errors import in_one_line
from windowpane.cli.options import Json, new_app
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen, counted
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.settings import Settings
    from windowpane.stores.base import Store
    from windowpane.stores.copy import Copied, Step
    from windowpane.stores.encrypted.keys import KeyRing
    from windowpane.wiring import LargeTexts

app = new_app(no_args_is_help=True)

STEPS: "dict[Step, str]" = {"copy": "copying", "verify": "comparing"}


@app.callback()
def store() -> None:
    """Copy sessions from one store to another, remove leftover objects, or mend the list of sessions.

    \b
    Examples:
      windowpane store copy sqlite:////srv/windowpane.db postgresql://db.example/windowpane
      WINDOWPANE_BLOBS_URL=s3://windowpane/texts windowpane store sweep
      WINDOWPANE_STORE_URL=redis+cluster://one.example,two.example windowpane store reindex
    """


@app.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Store to copy from, as for --store-url.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Store to copy to, as for --store-url.")],
    decrypt: Annotated[
        bool, typer.Option("--decrypt", help="Write TO without encryption, although a key is set.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Copy all sessions to another store, then compare both. Exit code 1: the copy is incomplete.

    Sessions may be used meanwhile; changed sessions are copied again. A copy that was stopped continues when the
    command is run again. FROM is not changed.

    With WINDOWPANE_ENCRYPTION_KEY or WINDOWPANE_ENCRYPTION_KEY_FILE, TO is encrypted with the first key. FROM may be
    plain, or encrypted with any of the keys.

    \b
    Examples:
      windowpane store copy sqlite:////srv/windowpane.db postgresql://db.example/windowpane
      WINDOWPANE_ENCRYPTION_KEY=NEW,OLD windowpane store copy sqlite:////srv/old.db sqlite:////srv/new.db
    """
    import anyio

    from windowpane.wiring import encryption_keys

    settings = local_settings("it opens both stores from this machine")
    keys = encryption_keys(settings)
    if decrypt and keys is None:
        raise InvalidInputError("--decrypt needs the key of FROM; set WINDOWPANE_ENCRYPTION_KEY")
    if source == target:
        raise InvalidInputError("FROM and TO are the same store")
    for url in (source, target):
        if url.startswith("memory:"):
            raise InvalidInputError("memory: is not persistent; use another store")
    scheme, _, path = source.partition(":///")
    if scheme == "sqlite" and not Path(path).exists():
        raise InvalidInputError(f"no file {path}; FROM must exist")
    screen = Screen(remarks_aside=as_json)
    copied = anyio.run(_copied, source, target, keys, decrypt, settings)
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
        screen.json(counts)
    else:
        _draw(screen, copied)
    raise typer.Exit(0 if copied.complete else 1)


async def _copied(source: str, target: str, keys: "KeyRing | None", decrypt: bool, settings: "Settings") -> "Copied":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from windowpane.stores.copy import copy_store
    from windowpane.stores.detect import refuse_sealed
    from windowpane.wiring import open_blobs, open_store

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

    def on_progress(step: "Step", done: int, total: int) -> None:
        shown.update(task, description=STEPS[step], completed=done, total=total)

    async with AsyncExitStack() as stack:
        blobs = open_blobs(settings)
        ours = await stack.enter_async_context(await _source(source, keys, blobs))
        theirs = await stack.enter_async_context(open_store(target, None if decrypt else keys, blobs=blobs))
        for opened in (ours, theirs):
            await refuse_sealed(opened)
        stack.enter_context(shown)
        return await copy_store(ours, theirs, on_progress)


async def _source(url: str, keys: "KeyRing | None", blobs: "LargeTexts | None") -> "Store":
    """Return the store to copy from: with the keys when there are any and its sessions are encrypted."""
    from windowpane.stores.detect import holds_sealed
    from windowpane.wiring import open_store

    if keys is None:
        return open_store(url, blobs=blobs)
    async with open_store(url) as plain:
        return open_store(url, keys if await holds_sealed(plain) else None, blobs=blobs)


@app.command()
def sweep(as_json: Json = False) -> None:
    """Remove objects of WINDOWPANE_BLOBS_URL that no session of the store names and that are older than an hour.

    A worker that ends in the middle of a write, or a service that is away during a deletion, can leave such objects.
    Sessions may be used meanwhile. Objects of sessions that another store has in the same place are removed as well:
    give each store a prefix of its own.

    \b
    Example:
      windowpane store sweep --json
    """
    import anyio

    settings = local_settings("it opens the store from this machine")
    if settings.blobs_url is None:
        raise InvalidInputError("there is no place for large texts beside the store; set WINDOWPANE_BLOBS_URL")
    there, removed = anyio.run(_swept, settings)
    screen = Screen(remarks_aside=as_json)
    if as_json:
        screen.json({"objects": there, "removed": removed})
    else:
        screen.line(f"{counted(there, 'object')}, {removed:,} of them removed.")


async def _swept(settings: "Settings") -> tuple[int, int]:
    from datetime import UTC, datetime

    from windowpane.wiring import open_blobs, open_store

    blobs = open_blobs(settings)
    if blobs is None:
        return 0, 0
    # Names are all that is looked at, so no key is needed.
    async with blobs(open_store(settings.database_url)) as store:
        return await store.sweep(datetime.now(UTC))


@app.command()
def reindex(as_json: Json = False) -> None:
    """List every session again that a Redis store holds, after a server of its cluster lost a part of the list.

    It reads every key, so it takes a while. Sessions may be used meanwhile. Other stores keep the list with the
    sessions, and need no such command.

    \b
    Examples:
      windowpane store reindex
      WINDOWPANE_STORE_URL=redis+cluster://one.example,two.example windowpane store reindex
    """
    import anyio

    sessions = anyio.run(_reindexed, local_settings("it opens the store from this machine"))
    screen = Screen(remarks_aside=as_json)
    if as_json:
        screen.json({"sessions": sessions})
    else:
        screen.line(f"{counted(sessions, 'session')} listed.")


async def _reindexed(settings: "Settings") -> int:
    from windowpane.wiring import reindex_store

    def on_progress(listed: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{counted(listed, 'session')} listed")

    listed = await reindex_store(settings.database_url, on_progress)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return listed


def _draw(screen: Screen, copied: "Copied") -> None:
    screen.line(
        f"{counted(copied.copied, 'session')} copied with {counted(copied.events, 'event')}; "
        f"{copied.verified:,} of {counted(copied.sessions, 'session')} verified as identical in both stores.",
        "bold" if copied.complete else "",
    )
    if copied.behind:
        screen.line(
            f"{counted(len(copied.behind), 'session')} changed meanwhile: stop the workers that write to FROM and copy "
            "again; only changes are copied."
        )
    if copied.others:
        screen.line(f"TO has {counted(copied.others, 'other session')}, not changed.")
