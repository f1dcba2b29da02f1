"""Which files an agent's folder holds now, and what each says, read again only when it changed.

A file is taken as unchanged while its times, size and inode are. File times are coarse: a file that was written only
just before it was read could change once more and look the same, so its content is compared again until its time
lies safely in the past.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from windowpane.agents.base import FileKind
from windowpane.context.agents import Problem

MAX_BYTES = 1024 * 1024
"""Larger files are not read."""

_SETTLED_AFTER_NS = 2_000_000_000
_NEARLY_MARKDOWN = (".markdown", ".mdc", ".mdown", ".mdx", ".txt")

ENTRIES = frozenset({"agent.yaml", "mcp.json", "prompts", "references", "rules"})
"""What counts directly in an agent's folder."""

Signature = tuple[int, int, int, int]
"""When the file was written, when it was changed in any way, its size and its inode."""

ValueT = TypeVar("ValueT")


class FoundFile(NamedTuple):
    """A file that counts: its name within the folder, what it is, and what changes when it does."""

    file: str
    path: str
    kind: FileKind
    signature: Signature

    @property
    def modified_ns(self) -> int:
        """Return when the file was last written."""
        return self.signature[0]


@dataclass(frozen=True, slots=True)
class Scan:
    """The files of a folder in the order of their names, and what could not be looked at.

    A file that has a second name, or lies behind a link, can change without anything happening in the folder.
    """

    found: tuple[FoundFile, ...]
    problems: tuple[Problem, ...]
    changes_elsewhere: bool = False


def scan(folder: str, entering: Callable[[str], None] | None = None) -> Scan:
    """Return the files of an agent's folder as they are now. `entering` gets each folder below before it is read."""
    looking = _Looking(entering)
    looking.at_file(folder, "agent.yaml", "manifest")
    looking.at_file(folder, "mcp.json", "servers")
    looking.at_tree(folder, "rules", "rule")
    looking.at_tree(folder, "references", "reference")
    looking.at_prompts(folder)
    return Scan(tuple(sorted(looking.found)), tuple(looking.problems), looking.changes_elsewhere)


class Shelf(Generic[ValueT]):
    """What files say, kept until they change. `read` gets a file and its text, or the problem with it."""

    def __init__(self, read: Callable[[FoundFile, str | Problem], ValueT]) -> None:
        self._read = read
        self._kept: dict[str, _Kept[ValueT]] = {}
        self.settled = True

    def values(self, found: tuple[FoundFile, ...]) -> tuple[ValueT, ...]:
        """Return what each file says now; the very same value as before when it did not change."""
        self._kept = {file.path: self._current(file) for file in found}
        self.settled = all(kept.settled for kept in self._kept.values())
        return tuple(kept.value for kept in self._kept.values())

    def _current(self, file: FoundFile) -> "_Kept[ValueT]":
        kept = self._kept.get(file.path)
        same = kept is not None and kept.file == file
        if kept and same and kept.settled:
            return kept
        settled = max(file.signature[:2]) + _SETTLED_AFTER_NS < time.time_ns()
        content = _content(file)
        digest = hashlib.blake2b(content if isinstance(content, bytes) else content.reason.encode()).digest()
        if kept and same and kept.digest == digest:
            return _Kept(file, digest, settled, kept.value)
        text = _decoded(file, content) if isinstance(content, bytes) else content
        return _Kept(file, digest, settled, self._read(file, text))


@dataclass(frozen=True, slots=True)
class _Kept(Generic[ValueT]):
    file: FoundFile
    digest: bytes
    settled: bool
    value: ValueT


class _Looking:
    """One look at a folder."""

    def __init__(self, entering: Callable[[str], None] | None) -> None:
        self._entering = entering
        self.found: list[FoundFile] = []
        self.problems: list[Problem] = []
        self.changes_elsewhere = False

    def at_file(self, folder: str, file: str, kind: FileKind) -> None:
        path = f"{folder}/{file}"
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                self.changes_elsewhere = True
                status = os.stat(path)  # noqa: PTH116 (at every look)
            self._take(file, path, kind, status)
        except OSError as error:
            self._miss(file, path, error)

    def at_tree(self, folder: str, file: str, kind: FileKind, above: tuple[tuple[int, int], ...] = ()) -> None:
        path = f"{folder}/{file}"
        above = above or _identity(path)
        for entry in self._entries(file, path):
            within = f"{file}/{entry.name}"
            try:
                if entry.is_symlink():
                    self.changes_elsewhere = True
                if entry.is_dir():
                    status = entry.stat()
                    self._enter(folder, within, kind, (status.st_dev, status.st_ino), above)
                elif entry.name[-3:].lower() == ".md":
                    self._take(within, entry.path, kind, entry.stat())
                else:
                    self._pass_by(within)
            except OSError as error:
                self._miss(within, entry.path, error)

    def at_prompts(self, folder: str) -> None:
        for entry in self._entries("prompts", f"{folder}/prompts"):
            file = f"prompts/{entry.name}"
            if file == "prompts/core.md":
                self.at_file(folder, file, "core")
            elif file == "prompts/default_site.md":
                self.at_file(folder, file, "default_site")
            elif file == "prompts/sites":
                self.at_tree(folder, file, "site")
            elif entry.name[-3:].lower() == ".md":
                self._problem(file, "not read: prompts are core.md, default_site.md and sites/*.md")
            else:
                self._pass_by(file)

    def _entries(self, file: str, path: str) -> "Iterator[os.DirEntry[str]]":
        if self._entering is not None:
            self._entering(path)
        try:
            with os.scandir(path) as entries:
                yield from (entry for entry in entries if entry.name[0] != "." and entry.name[-1] != "~")
        except OSError as error:
            self._miss(file, path, error)

    def _enter(
        self, folder: str, file: str, kind: FileKind, here: tuple[int, int], above: tuple[tuple[int, int], ...]
    ) -> None:
        if here in above:
            self._problem(file, "not followed: the link leads back to a folder that it lies in")
        else:
            self.at_tree(folder, file, kind, (*above, here))

    def _take(self, file: str, path: str, kind: FileKind, status: os.stat_result) -> None:
        if status.st_nlink > 1:
            self.changes_elsewhere = True
        if not stat.S_ISREG(status.st_mode):
            self._problem(file, "not read: it is not a plain file")
        elif status.st_size > MAX_BYTES:
            self._problem(file, f"not read: it has {status.st_size:,} bytes, and no more than {MAX_BYTES:,} are read")
        else:
            signature = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            self.found.append(FoundFile(_shown(file), path, kind, signature))

    def _pass_by(self, file: str) -> None:
        if file.lower().endswith(_NEARLY_MARKDOWN):
            self._problem(file, "not read: only files that end in .md are")

    def _miss(self, file: str, path: str, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            self._problem(file, f"cannot be read: {error.strerror}")
        elif Path(path).is_symlink():
            self._problem(file, "cannot be read: the link leads nowhere")

    def _problem(self, file: str, reason: str) -> None:
        self.problems.append(Problem(file=_shown(file), line=None, reason=reason))


def _identity(path: str) -> tuple[tuple[int, int], ...]:
    try:
        status = os.stat(path)  # noqa: PTH116 (at every turn)
    except OSError:
        return ()
    return ((status.st_dev, status.st_ino),)


def _content(file: FoundFile) -> bytes | Problem:
    try:
        # Without waiting: a file that was a file a moment ago may have become a pipe.
        handle = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        return Problem(file=file.file, line=None, reason=f"cannot be read: {error.strerror}")
    if len(content) > MAX_BYTES:
        return Problem(file=file.file, line=None, reason=f"not read: it has more than {MAX_BYTES:,} bytes")
    return content


def _decoded(file: FoundFile, content: bytes) -> str | Problem:
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Problem(file=file.file, line=line, reason="not UTF-8 text; save the file as UTF-8")


def _shown(file: str) -> str:
    """Return a file name that can be printed: bytes that are not UTF-8 become �."""
    return file if file.isascii() else os.fsencode(file).decode("utf-8", "replace")
