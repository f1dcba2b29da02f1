"""What happened in some folders, as Linux queues it: before the call that did it returns.

An `OSError` says that the system has no such thing, or no more of it to give.
"""

import ctypes
import errno
import os
import select
import struct
import sys
from contextlib import suppress
from typing import NamedTuple
from weakref import finalize

EVERYWHERE = -1
"""In place of a folder's number: events were lost, or something was mounted or unmounted."""

ITSELF = 0x4 | 0x400 | 0x800
"""Tell when the attributes of the folder change, and when it is deleted or moved."""

COMING = 0x80 | 0x100
"""Tell also when an entry is moved here or created."""

ENTRIES = COMING | 0x2 | 0x8 | 0x40 | 0x200
"""Tell also when an entry is written, closed after writing, moved away or deleted."""

_ONLY_FOLDERS_NO_LINKS = 0x01000000 | 0x02000000
_ALSO_WHAT_IS_ASKED_ALREADY = 0x20000000

_HEAD = struct.Struct("iIII")
_READ_BYTES = 65_536
_MOST_READS = 128


class Event(NamedTuple):
    """Something happened to the entry of a folder, or to the folder itself: then there is no name."""

    folder: int
    name: str


class Inotify:
    """One queue of the kernel, for one process; not for several threads at once.

    Raises:
        OSError: there is no queue to have.
    """

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        libc = ctypes.CDLL(None, use_errno=True)
        self._add, self._remove = libc.inotify_add_watch, libc.inotify_rm_watch
        self._queue = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._close_queue = finalize(self, os.close, self._queue)
        self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._close_mounts = finalize(self, os.close, self._mounts)
        self._ready = select.poll()
        self._ready.register(self._queue, select.POLLIN)
        self._ready.register(self._mounts, select.POLLPRI)

    def close(self) -> None:
        """Watch nothing any more."""
        self._close_queue()
        self._close_mounts()

    def add(self, folder: str, told: int) -> int:
        """Watch a folder for what is to be told and return its number: the same one when it is watched already.

        Raises:
            OSError: it is no folder or a link to one, it may not be read, or too many are watched.
        """
        asked = told | _ONLY_FOLDERS_NO_LINKS | _ALSO_WHAT_IS_ASKED_ALREADY
        return _checked(self._add(self._queue, os.fsencode(folder), asked))

    def remove(self, folder: int) -> None:
        """Watch a folder no more; nothing happens when the kernel has removed it already."""
        self._remove(self._queue, folder)

    def mountinfo(self) -> str:
        """Return the list of what is mounted now."""
        os.lseek(self._mounts, 0, os.SEEK_SET)
        with open(self._mounts, encoding="utf-8", errors="surrogateescape", closefd=False) as listed:
            return listed.read()

    def events(self) -> list[Event]:
        """Return what happened since the last call."""
        events: list[Event] = []
        for ready, _ in self._ready.poll(0):
            events += self._queued() if ready == self._queue else [Event(EVERYWHERE, "")]
        return events

    def _queued(self) -> list[Event]:
        events = _events(os.read(self._queue, _READ_BYTES))
        with suppress(BlockingIOError):
            for _ in range(_MOST_READS):
                # So many at once are not told apart, only taken from the queue.
                os.read(self._queue, _READ_BYTES)
                events = [Event(EVERYWHERE, "")]
        return events


def _events(queued: bytes) -> list[Event]:
    events: list[Event] = []
    at = 0
    while at < len(queued):
        folder, _, _, length = _HEAD.unpack_from(queued, at)
        at += _HEAD.size + length
        events.append(Event(folder, os.fsdecode(queued[at - length : at].rstrip(b"\0"))))
    return events


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
