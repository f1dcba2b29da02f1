"""Folders whose files the page may show and edit, and nothing outside of them.

A path is resolved first, with every link in it; what then lies in no root is not there. The file is opened step by
step from its root without following links, so a link that is put there in between leads nowhere. Files are replaced
whole, after a look at the revision that the change is meant for.
"""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

from windowpane.errors import (
    AlreadyThereError,
    InvalidInputError,
    MissingFileError,
    StaleRevisionError,
)

MAX_BYTES = 2 * 1024 * 1024
"""Larger files are neither shown nor written."""

ANY = "*"

EntryKind = Literal["file", "folder", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a folder holds under a name. A link is what it leads to, if that lies in a root, and else `other`."""

    name: str
    path: str
    kind: EntryKind
    size: int
    modified_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A text file as it is now. `revision` is another one as soon as a byte is another."""

    path: str
    text: str
    revision: str
    size: int
    modified_at: datetime


class Offer:
    """The folder that the server was started in: it is shared when its user said so, once, and until they take it back.

    The answer is kept in a file, by folder. Every worker looks at it.
    """

    def __init__(self, folder: Path, answers: Path) -> None:
        self.folder = folder.resolve()
        self._answers = answers

    @property
    def taken(self) -> bool:
        """Tell whether the folder is shared."""
        return str(self.folder) in self._shared()

    def answer(self, share: bool) -> None:
        """Keep whether the folder is shared.

        Raises:
            InvalidInputError: that cannot be kept.
        """
        others = [folder for folder in self._shared() if folder != str(self.folder)]
        shared = [*others, str(self.folder)] if share else others
        new = self._answers.with_name(f".{self._answers.name}-{secrets.token_hex(8)}")
        try:
            self._answers.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps(shared), "utf-8")
            new.replace(self._answers)
        except OSError as error:
            raise InvalidInputError(f"{self._answers} cannot be written: {error.strerror}") from None

    def _shared(self) -> list[str]:
        try:
            found: object = json.loads(self._answers.read_text("utf-8"))
        except (OSError, ValueError):
            return []
        return [str(folder) for folder in cast("list[object]", found)] if isinstance(found, list) else []


class Roots:
    """The folders that are shared with the page, and one that its user may share."""

    def __init__(self, folders: Sequence[Path] = (), offer: Offer | None = None) -> None:
        self._named = tuple(dict.fromkeys(folder.expanduser() for folder in folders))
        self.offer = offer

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the roots that exist, with links resolved."""
        return tuple(str(folder.resolve()) for folder in self._folders if folder.is_dir())

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (*self._named, self.offer.folder) if self.offer and self.offer.taken else self._named

    def entries(self, path: str) -> tuple[Entry, ...]:
        """Return what a folder holds: folders first, then by name.

        Raises:
            MissingFileError: there is no such folder in any root.
        """
        found: list[Entry] = []
        with self._opened(path, os.O_RDONLY | os.O_DIRECTORY) as (handle, real), os.scandir(handle) as scanned:
            for entry in scanned:
                with suppress(OSError, MissingFileError):
                    found.append(self._entry(entry, real))
        return tuple(sorted(found, key=lambda entry: (entry.kind != "folder", entry.name)))

    def read(self, path: str) -> OpenedFile:
        """Return a text file.

        Raises:
            MissingFileError: there is no such file in any root.
            InvalidInputError: it is too large, or not text.
        """
        with self._opened(path, os.O_RDONLY | os.O_NONBLOCK) as (handle, real):
            status = os.fstat(handle)
            content = _content(handle, path)
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise InvalidInputError(f"{path} is not UTF-8 text") from None
        return OpenedFile(
            path=str(real),
            text=text,
            revision=_revision(content),
            size=len(content),
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
        )

    def write(self, path: str, text: str, *, revision: str | None) -> OpenedFile:
        """Write a text file; without a revision, a new one.

        Raises:
            MissingFileError: there is no such file, or no folder to make it in, in any root.
            AlreadyThereError: it is there, and no revision was given.
            StaleRevisionError: it is not the one of `revision`.
            InvalidInputError: it is too large, or not Unicode.
        """
        content = _encoded(text)
        real = self._real(path)
        with self._opened(str(real.parent), os.O_RDONLY | os.O_DIRECTORY) as (folder, _):
            mode = _check(folder, real, revision)
            new = f".{real.name[:100]}.{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(new, flags, mode, dir_fd=folder), "wb") as opened:
                    opened.write(content)
                    opened.flush()
                    os.fsync(opened.fileno())
                if revision is None:
                    os.link(new, real.name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    os.replace(new, real.name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileExistsError:
                raise AlreadyThereError(str(real), "in its folder") from None
            except OSError as error:
                raise MissingFileError(path, f"it cannot be written: {error.strerror}") from None
            finally:
                with suppress(OSError):
                    os.unlink(new, dir_fd=folder)
        return self.read(path)

    def contains(self, path: str) -> bool:
        """Tell whether a path lies in a root, with every link resolved."""
        try:
            self._real(path)
        except MissingFileError:
            return False
        return True

    def folder_of(self, path: str) -> Path:
        """Return a folder, or the folder that a file lies in, with links resolved.

        Raises:
            MissingFileError: there is no such thing in any root.
        """
        real = self._real(path)
        try:
            return real if stat.S_ISDIR(real.stat().st_mode) else real.parent
        except OSError:
            raise MissingFileError(path) from None

    def _real(self, path: str) -> Path:
        given = Path(path)
        if not self._folders:
            raise MissingFileError(path, "no folders are shared; set WINDOWPANE_ROOTS")
        if not given.is_absolute() or "\0" in path:
            raise MissingFileError(path, "a file is named by its whole path, from the root of the file system on")
        try:
            path.encode()
            real = given.resolve()
        except (OSError, RuntimeError, UnicodeEncodeError):
            raise MissingFileError(path) from None
        if not any(real.is_relative_to(root) for root in self.paths):
            raise MissingFileError(path, f"it is in none of the shared folders: {self._spoken()}")
        return real

    def _spoken(self) -> str:
        return ", ".join(self.paths) or "none of them exists"

    @contextmanager
    def _opened(self, path: str, flags: int) -> Generator[tuple[int, Path]]:
        real = self._real(path)
        root = next(root for root in self.paths if real.is_relative_to(root))
        parts = real.relative_to(root).parts
        handle = -1
        try:
            handle = os.open(root, (os.O_RDONLY | os.O_DIRECTORY if parts else flags) | os.O_CLOEXEC)
            for place, part in enumerate(parts, 1):
                wanted = flags if place == len(parts) else os.O_RDONLY | os.O_DIRECTORY
                below = os.open(part, wanted | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
                os.close(handle)
                handle = below
        except OSError as error:
            if handle >= 0:
                os.close(handle)
            why = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
            raise MissingFileError(path, why or "it cannot be opened") from None
        try:
            yield handle, real
        finally:
            os.close(handle)

    def _entry(self, entry: "os.DirEntry[str]", folder: Path) -> Entry:
        path = str(folder / entry.name)
        entry.name.encode()
        status = entry.stat() if not entry.is_symlink() or self.contains(path) else entry.stat(follow_symlinks=False)
        kind: EntryKind = "other"
        if stat.S_ISDIR(status.st_mode):
            kind = "folder"
        elif stat.S_ISREG(status.st_mode):
            kind = "file"
        return Entry(
            name=entry.name,
            path=path,
            kind=kind,
            size=status.st_size,
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
        )


def _content(handle: int, path: str) -> bytes:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError(f"{path} is not a plain file")
    if status.st_size > MAX_BYTES:
        raise InvalidInputError(f"{path} has {status.st_size:,} bytes, and no more than {MAX_BYTES:,} are read")
    with os.fdopen(os.dup(handle), "rb") as opened:
        return opened.read(MAX_BYTES)


def _check(folder: int, real: Path, revision: str | None) -> int:
    """Return with which permissions a file is written, if it is the one that is meant."""
    try:
        handle = os.open(real.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        if revision is None:
            return 0o644
        if revision == ANY:
            raise MissingFileError(str(real)) from None
        raise StaleRevisionError(str(real), None) from None
    except OSError as error:
        raise MissingFileError(str(real), f"it cannot be read: {error.strerror}") from None
    try:
        if revision is None:
            raise AlreadyThereError(str(real), "in its folder")
        now = _revision(_content(handle, str(real)))
        if revision not in (ANY, now):
            raise StaleRevisionError(str(real), now)
        return os.fstat(handle).st_mode & 0o777
    finally:
        os.close(handle)


def _encoded(text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"half a character at {error.start} cannot be written") from None
    if len(content) > MAX_BYTES:
        raise InvalidInputError(f"{len(content):,} bytes, and no more than {MAX_BYTES:,} are written")
    return content


def _revision(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
