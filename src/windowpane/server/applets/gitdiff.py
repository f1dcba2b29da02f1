"""What changed in a repository since a revision. Nothing that the repository names is run: see `repository.py`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import anyio.to_thread

from windowpane.errors import InvalidInputError
from windowpane.server.applets.repository import find_repository, git, open_private
from windowpane.server.applets.roots import Roots

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
DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=all",
    "--find-renames",
)


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
        raise InvalidInputError(f"{base!r} is not a git revision; name a commit, a branch or a tag")
    folder = roots.folder_of(path)
    repository = await anyio.to_thread.run_sync(find_repository, roots, folder)
    only = ["--", path]
    with repository.private() as private:
        await open_private(repository, private)
        names = await git(repository, private, [*DIFF, "--name-status", "-z", base, *only])
        numbers = await git(repository, private, [*DIFF, "--numstat", "-z", base, *only])
        patch = await git(repository, private, [*DIFF, base, *only])
        others = await git(
            repository, private, ["ls-files", "--others", "--exclude-standard", "--full-name", "-z", *only]
        )
    files = [*_files(names.text, numbers.text), *_untracked(others.text)]
    return Diff(
        repository=str(repository.top),
        base=base,
        files=tuple(files[:MAX_FILES]),
        patch=patch.text,
        truncated=patch.truncated or names.truncated or others.truncated or len(files) > MAX_FILES,
    )


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
