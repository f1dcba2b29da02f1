"""Whether an agent's folder is as it was when it was read, without a look at any of its files.

The kernel tells what happens in each folder of the tree, and whether a folder that leads to it is moved. It tells
nothing of what is written through mapped memory, nor through a second name that a file was given meanwhile: so no
folder is trusted for long, and its files are looked at again from time to time.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from windowpane.agents.watch.inotify import COMING, ENTRIES, EVERYWHERE, ITSELF, Event, Inotify
from windowpane.agents.watch.mounts import tells_everything

TRUSTED_S = 5.0
"""How long nothing is looked at in a folder where the kernel tells of no change."""


class Sight:
    """A folder that is watched since before it was read. It is over once anything there changes."""

    def __init__(self, folder: str, since_s: float) -> None:
        self.folder = folder
        self.since_s = since_s
        self.is_over = False
        self.folders: set[int] = set()


class Watch:
    """The folders that this process watches, with one queue of the kernel. Safe to use from several threads.

    `root` is the folder that agents lie in, and `manifest` the entry that would make it an agent itself. A process that
    was forked has a queue of its own: it would take events from the other one.
    """

    def __init__(self, root: str, manifest: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._manifest = frozenset({manifest})
        self._clock = clock
        self._lock = threading.Lock()
        self._refused: dict[str, float] = {}
        self._process = os.getpid()
        self._kernel: Inotify | None = None
        self._watched: dict[int, dict[Sight, frozenset[str] | None]] = {}

    def start(self, folder: str, entries: frozenset[str]) -> Sight | None:
        """Watch these entries of a folder and all that leads to it; `add` what lies deeper, each before it is read.

        Return None where the kernel does not tell everything, or did not a moment ago.
        """
        now_s = self._clock()
        sight = Sight(folder, now_s)
        with self._lock:
            if now_s < self._refused.get(folder, now_s):
                return None
            try:
                kernel = self._opened()
                if not tells_everything(folder, kernel.mountinfo()):
                    self._refuse(sight)
                    return None
                for above in reversed(Path(folder).parents):
                    if str(above) == self._root:
                        self._add(kernel, sight, self._root, ITSELF | COMING, self._manifest)
                    else:
                        self._add(kernel, sight, str(above), ITSELF, frozenset())
                self._add(kernel, sight, folder, ITSELF | ENTRIES, entries)
            except OSError:
                self._refuse(sight)
                return None
        return sight

    def add(self, sight: Sight, folder: str) -> None:
        """Watch one more folder, with all its entries. If that is not possible, the sight is over."""
        with self._lock:
            if self._kernel is None or sight.is_over:
                return
            try:
                self._add(self._kernel, sight, folder, ITSELF | ENTRIES, None)
            except FileNotFoundError:
                # The folder that it would lie in is watched.
                return
            except OSError:
                self._refuse(sight)

    def holds(self, sight: Sight) -> bool:
        """Tell whether nothing changed in a folder, as far as it is trusted."""
        with self._lock:
            self._catch_up()
        return not sight.is_over and self._clock() - sight.since_s < TRUSTED_S

    def end(self, sight: Sight) -> None:
        """Watch a folder no more."""
        with self._lock:
            self._end(sight)

    def refuse(self, sight: Sight) -> None:
        """Watch a folder no more, because it can change without being seen, and not again for a while."""
        with self._lock:
            self._refuse(sight)

    def close(self) -> None:
        """Watch nothing, and give the queue back."""
        with self._lock:
            self._forget()

    def _opened(self) -> Inotify:
        self._catch_up()
        if self._kernel is None:
            self._kernel = Inotify()
        return self._kernel

    def _add(self, kernel: Inotify, sight: Sight, folder: str, told: int, entries: frozenset[str] | None) -> None:
        number = kernel.add(folder, told)
        sight.folders.add(number)
        watching = self._watched.setdefault(number, {})
        before = watching.get(sight, frozenset())
        watching[sight] = None if before is None or entries is None else before | entries

    def _catch_up(self) -> None:
        """Take what the kernel queued, and end each sight of what changed."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._forget()
        if self._kernel is not None:
            for sight in self._changed(self._kernel.events()):
                self._end(sight)

    def _changed(self, events: Iterable[Event]) -> set[Sight]:
        changed: set[Sight] = set()
        for folder, name in events:
            if folder == EVERYWHERE:
                return self._all()
            for sight, entries in self._watched.get(folder, {}).items():
                if not name or entries is None or name in entries:
                    changed.add(sight)
        return changed

    def _refuse(self, sight: Sight) -> None:
        self._end(sight)
        self._refused[sight.folder] = self._clock() + TRUSTED_S

    def _end(self, sight: Sight) -> None:
        sight.is_over = True
        for folder in sight.folders:
            watching = self._watched[folder]
            del watching[sight]
            if not watching:
                del self._watched[folder]
                if self._kernel is not None:
                    self._kernel.remove(folder)
        sight.folders.clear()

    def _forget(self) -> None:
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None
        for sight in self._all():
            self._end(sight)

    def _all(self) -> set[Sight]:
        return {sight for watching in self._watched.values() for sight in watching}
