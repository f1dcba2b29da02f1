"""What changed in a repository since a revision, as git says it, and without running anything of the repository's.

A repository can name programs in its configuration: to show differences, to convert files, to watch the file system.
None of them is run: external differs and converters are off, every filter that the repository names is emptied, hooks
and the file-system watcher are off, submodules are not entered. Git itself is given no shell, no terminal, no network,
a deadline and a greatest size.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
import anyio.abc

from windowpane.errors import InvalidInputError, MissingFileError
from windowpane.server.applets.roots import Roots

DEADLINE_S = 20.0
MAX_DIFF_BYTES = 2 * 1024 * 1024
MAX_FILES = 500

FileStatus = Literal["added", "deleted", "modified", "renamed", "copied", "type_changed", "unmerged", "untracked"]
_STATUSES: Mapping[str, FileStatus] = {
    "A": "added",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "C": "copied",
    "T": "type_changed",
    "U": "unmerged",
}
REVISION = r"^[A-Za-z0-9][A-Za-z0-9._/@{}^~-]{0,199}$"
_SAFE = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "diff.external=",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "protocol.allow=never",
    "core.quotePath=false",
)
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One file that is not as it was. Line counts are null for what is not text."""

    path: str
    old_path: str | None
    status: FileStatus
    added: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What changed below a folder since `base`. `patch` is a unified diff; `truncated` says that not all of it is here.

    Files that git does not know are in `files` with the status `untracked`, and not in the patch.
    """

    repository: str
    base: str
    files: tuple[ChangedFile, ...]
    patch: str
    truncated: bool


async def diff(roots: Roots, path: str, base: str = "HEAD") -> Diff:
    """Return what changed at a path since a revision.

    Raises:
        MissingFileError: there is no such path in a root, or no repository around it.
        InvalidInputError: git does not know the revision.
    """
    if not re.fullmatch(REVISION, base) or ".." in base:
        raise InvalidInputError(f"{base!r} is not a revision of git; name a commit, a branch or a tag")
    folder = roots.folder_of(path)
    repository = await _repository(roots, folder)
    options = await _options(folder)
    only = ["--", path if Path(path) != folder else "."]
    what = [
        *options,
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--ignore-submodules=all",
        "--find-renames",
    ]
    names = await _git(folder, [*what, "--name-status", "-z", base, *only])
    numbers = await _git(folder, [*what, "--numstat", "-z", base, *only])
    patch = await _git(folder, [*what, base, *only])
    others = await _git(folder, [*options, "ls-files", "--others", "--exclude-standard", "--full-name", "-z", *only])
    files = [*_files(names.text, numbers.text), *_untracked(others.text)]
    return Diff(
        repository=str(repository),
        base=base,
        files=tuple(files[:MAX_FILES]),
        patch=patch.text,
        truncated=patch.truncated or names.truncated or others.truncated or len(files) > MAX_FILES,
    )


async def _repository(roots: Roots, folder: Path) -> Path:
    """Return the top of the repository, if it and all that git keeps of it lie in a root."""
    asked = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir"]
    try:
        said = await _git(folder, asked)
    except InvalidInputError as error:
        raise MissingFileError(str(folder), f"it lies in no repository that can be read: {error}") from None
    places = said.text.splitlines()
    if len(places) != 3 or not all(roots.contains(place) for place in places):
        raise MissingFileError(str(folder), "its repository does not lie in the folders that may be looked into")
    return Path(places[0])


async def _options(folder: Path) -> list[str]:
    """Return git's options that keep the repository's own programs from being run."""
    named = await _git(
        folder, ["config", "--local", "--includes", "--name-only", "-z", "--get-regexp", r"^filter\."], (0, 1)
    )
    keys = [key for key in named.text.split("\0") if key]
    if any("=" in key or "\n" in key for key in keys):
        raise MissingFileError(str(folder), "its repository names a filter that cannot be switched off")
    emptied = [f"{key}={'false' if key.endswith('.required') else ''}" for key in keys]
    return [part for setting in (*_SAFE, *emptied) for part in ("-c", setting)]


@dataclass(frozen=True, slots=True)
class _Said:
    text: str
    truncated: bool


async def _git(folder: Path, arguments: Sequence[str], fine: tuple[int, ...] = (0,)) -> _Said:
    settings = [part for setting in _SAFE for part in ("-c", setting)]
    command = ["git", "--no-pager", *settings, *arguments]
    output, complaint, truncated = bytearray(), bytearray(), False
    try:
        with anyio.fail_after(DEADLINE_S):
            process = await anyio.open_process(
                command,
                cwd=folder,
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            async with process, anyio.create_task_group() as tasks:
                tasks.start_soon(_collect, process.stderr, complaint, 4096)
                truncated = await _collect(process.stdout, output, MAX_DIFF_BYTES)
                if truncated:
                    process.kill()
                await process.wait()
    except FileNotFoundError:
        raise MissingFileError(str(folder), "git is not installed") from None
    except TimeoutError:
        raise InvalidInputError(f"git took longer than {DEADLINE_S:g} s; ask for a smaller folder") from None
    if not truncated and process.returncode not in fine:
        raise InvalidInputError(complaint.decode("utf-8", "replace").strip().partition("\n")[0] or "git failed")
    return _Said(output.decode("utf-8", "replace"), truncated)


async def _collect(stream: anyio.abc.ByteReceiveStream | None, into: bytearray, limit: int) -> bool:
    """Read a stream to its end, or until the limit is passed; tell which."""
    if stream is None:
        return False
    async for chunk in stream:
        into += chunk
        if len(into) > limit:
            del into[limit:]
            return True
    return False


def _files(names: str, numbers: str) -> list[ChangedFile]:
    counts = _counts(numbers)
    parts = iter(names.split("\0"))
    files: list[ChangedFile] = []
    for code in parts:
        if not code:
            continue
        status = _STATUSES.get(code[0], "modified")
        first = next(parts, "")
        old, path = (first, next(parts, "")) if code[0] in "RC" else (None, first)
        added, deleted = counts.get(path, (None, None))
        files.append(ChangedFile(path=path, old_path=old, status=status, added=added, deleted=deleted))
    return files


def _counts(numbers: str) -> dict[str, tuple[int | None, int | None]]:
    parts = iter(numbers.split("\0"))
    counts: dict[str, tuple[int | None, int | None]] = {}
    for line in parts:
        if not line:
            continue
        added, deleted, path = (*line.split("\t", 2), "", "")[:3]
        if not path:
            # A rename: the two names follow on their own.
            next(parts, "")
            path = next(parts, "")
        counts[path] = (int(added) if added.isdecimal() else None, int(deleted) if deleted.isdecimal() else None)
    return counts


def _untracked(names: str) -> list[ChangedFile]:
    return [
        ChangedFile(path=path, old_path=None, status="untracked", added=None, deleted=None)
        for path in names.split("\0")
        if path
    ]
