"""Remember what files were like, and tell later whether they still are.

A mark is the hash of a file's content and the time of its last change. Only regular files are opened, whatever a name
leads to, and only small ones are read: a large file is known by its size and time. A file that cannot be looked at in
time has no mark, and the turn does not wait for it.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, TypeVar

import anyio

from windowpane.context.events import FileMark

MAX_HASHED_BYTES = 8 * 1024 * 1024
"""The size up to which a file is read whole."""

PATIENCE_S = 5.0
"""How long all files together may take: some stand on disks that do not answer."""

AT_ONCE = 4

FileState = Literal["exists", "missing", "changed"]
"""What became of a file since it was marked. One that never had a mark cannot be told to have changed."""

T = TypeVar("T")


async def read_marks(paths: Iterable[str]) -> dict[str, FileMark]:
    """Return the marks of those paths that are regular files and can be read."""
    read = await _of_each(paths, mark_of)
    return {path: mark for path, mark in read.items() if mark is not None}


async def file_states(paths: Iterable[str], marks: Mapping[str, FileMark]) -> dict[str, FileState]:
    """Return what became of each path. One that did not answer in time is taken to exist."""
    paths = tuple(paths)

    def state(path: str) -> FileState:
        return state_of(path, marks.get(path))

    read = await _of_each(paths, state)
    return {path: read.get(path, "exists") for path in paths}


def mark_of(path: str) -> FileMark | None:
    """Return what a file is like now, or None when it is no regular file or cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - a Path would tidy the name, and the name is data
            return None
        return _read(path)
    except (OSError, ValueError):
        return None


def state_of(path: str, mark: FileMark | None) -> FileState:
    """Return what became of a file since it was marked."""
    try:
        os.stat(path)  # noqa: PTH116 - as above
    except ValueError:
        return "missing"
    except OSError as error:
        # Otherwise it exists and cannot be read, or that cannot be found out.
        return "missing" if error.errno in _NOT_THERE else "exists"
    now = mark_of(path)
    return "changed" if mark is not None and now is not None and now.hash != mark.hash else "exists"


_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


def _read(path: str) -> FileMark | None:
    # What was a file a moment ago may be a pipe by now: opening must not wait, and what is open is looked at again.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return None
        modified_at = datetime.fromtimestamp(about.st_mtime, UTC)
        if about.st_size > MAX_HASHED_BYTES:
            return FileMark(f"stat:{about.st_size}:{about.st_mtime_ns}", modified_at)
        digest, left = hashlib.sha256(), MAX_HASHED_BYTES
        while left > 0 and (chunk := file.read(min(left, 1 << 20))):
            digest.update(chunk)
            left -= len(chunk)
        return FileMark(digest.hexdigest(), modified_at)


async def _of_each(paths: Iterable[str], ask: Callable[[str], T]) -> dict[str, T]:
    """Return what a function says about each path, without those that took too long."""
    answers: dict[str, T] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def answer(path: str) -> None:
        answers[path] = await anyio.to_thread.run_sync(ask, path, limiter=limiter, abandon_on_cancel=True)

    with anyio.move_on_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            for path in dict.fromkeys(paths):
                tasks.start_soon(answer, path)
    return answers
