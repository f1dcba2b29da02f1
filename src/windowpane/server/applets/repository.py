"""Read a repository through a private git directory, so that nothing its configuration names is ever run.

A repository can name programs in many places: `config`, `config.worktree`, files that these include, hooks. Switching
each of them off is a list that is never complete. So git is never pointed at the repository's own directory. It gets an
empty one with a configuration of ours, in which links lead to the repository's objects, references and index: data
that git reads and does not run. Only a few settings are taken over, and only with values from a fixed set.
"""

import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.abc

from windowpane.errors import InvalidInputError, MissingFileError
from windowpane.server.applets.roots import Roots

DEADLINE_S = 20.0
MAX_OUTPUT_BYTES = 2 * 1024 * 1024
MAX_CONFIG_BYTES = 1024 * 1024
MAX_ALTERNATES = 16

SHARED = ("objects", "refs", "packed-refs", "reftable", "shallow")
"""What worktrees of a repository share. Only data."""

OWN = ("index", "logs")
"""What each worktree has of its own. Only data."""

BOOLEANS = ("true", "false", "yes", "no", "on", "off", "1", "0")
HARMLESS: Mapping[str, Sequence[str]] = {
    "core.autocrlf": (*BOOLEANS, "input"),
    "core.eol": ("lf", "crlf", "native"),
    "core.filemode": BOOLEANS,
    "core.ignorecase": BOOLEANS,
    "core.precomposeunicode": BOOLEANS,
    "core.symlinks": BOOLEANS,
    "extensions.objectformat": ("sha1", "sha256"),
    "extensions.refstorage": ("files", "reftable"),
}
"""Settings that change what a file's content means to git, with the values that are taken over."""

OURS: Mapping[str, str] = {
    "core.bare": "false",
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.pager": "cat",
    "core.quotepath": "false",
    "core.attributesfile": "/dev/null",
    "core.excludesfile": "/dev/null",
    "diff.ignoresubmodules": "all",
    "submodule.recurse": "false",
    "protocol.allow": "never",
}
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_PAGER": "cat",
}
"""All of git's environment. Versions before 2.44 do not know GIT_NO_LAZY_FETCH; with no protocol allowed they cannot
fetch either."""


@dataclass(frozen=True, slots=True)
class Output:
    """What git printed, and whether there was more."""

    text: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that lies in a root as a whole: its working tree, its git directory and what that one shares."""

    top: Path
    git_dir: Path
    common_dir: Path

    @contextmanager
    def private(self) -> Generator[Path]:
        """Make the private git directory, for as long as it is needed."""
        with TemporaryDirectory(prefix="windowpane-git-") as made:
            folder = Path(made)
            for base, names in ((self.common_dir, SHARED), (self.git_dir, OWN)):
                for name in names:
                    if (base / name).exists():
                        (folder / name).symlink_to(base / name)
            for shared_index in self.git_dir.glob("sharedindex.*"):
                (folder / shared_index.name).symlink_to(shared_index)
            # Git takes a linked HEAD for a reference.
            (folder / "HEAD").write_text(f"{_line(self.git_dir / 'HEAD')}\n")
            (folder / "info").mkdir()
            if (self.common_dir / "info" / "exclude").is_file():
                (folder / "info" / "exclude").symlink_to(self.common_dir / "info" / "exclude")
            for name in ("objects", "refs"):
                (folder / name).mkdir(exist_ok=True)
            yield folder


def find_repository(roots: Roots, folder: Path) -> Repository:
    """Return the repository around a folder, if all that git would read of it lies in a root.

    Raises:
        MissingFileError: there is none, or some of it lies elsewhere.
    """
    for top in (folder, *folder.parents):
        if not roots.contains(str(top)):
            break
        if (top / ".git").exists():
            return _checked(roots, _opened(top))
    raise MissingFileError(str(folder), "it is in no git repository inside the shared folders")


def _opened(top: Path) -> Repository:
    named = top / ".git"
    if named.is_dir():
        return Repository(top, named, named)
    git_dir = (top / _line(named).removeprefix("gitdir:").strip()).resolve()
    common = git_dir / "commondir"
    return Repository(top, git_dir, (git_dir / _line(common)).resolve() if common.is_file() else git_dir)


def _checked(roots: Roots, found: Repository) -> Repository:
    data = [found.git_dir, found.git_dir / "HEAD", found.common_dir, found.common_dir / "info" / "exclude"]
    data += [found.common_dir / name for name in SHARED] + [found.git_dir / name for name in OWN]
    data += found.git_dir.glob("sharedindex.*")
    data += _alternates(found.common_dir / "objects")
    if not all(roots.contains(str(path)) for path in data if path.exists() or path.is_symlink()):
        raise MissingFileError(str(found.top), "part of its git repository lies outside the shared folders")
    return found


def _alternates(objects: Path) -> list[Path]:
    """Return the further folders that git would read objects from."""
    found: list[Path] = []
    waiting = [objects]
    while waiting:
        folder = waiting.pop()
        file = folder / "info" / "alternates"
        if not file.is_file():
            continue
        if len(found) > MAX_ALTERNATES:
            raise MissingFileError(str(objects), f"its repository has more than {MAX_ALTERNATES} alternates")
        lines = file.read_bytes()[:MAX_CONFIG_BYTES].decode("utf-8", "replace").splitlines()
        named = [(folder / line.strip()).resolve() for line in lines if line.strip() and not line.startswith("#")]
        new = [path for path in named if path not in found]
        found += new
        waiting += new
    return found


def _line(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(4096).decode().strip()
    except (OSError, UnicodeDecodeError):
        raise MissingFileError(str(file), "its git repository cannot be read") from None


async def open_private(repository: Repository, folder: Path) -> None:
    """Write the configuration of a private git directory: ours, and what is harmless of the repository's."""
    taken = await _harmless(repository.common_dir / "config")
    settings = {**taken, **OURS, "core.repositoryformatversion": "1"}
    lines = [f"[{name.partition('.')[0]}]\n\t{name.partition('.')[2]} = {value}" for name, value in settings.items()]
    (folder / "config").write_text("\n".join(lines) + "\n")


async def _harmless(config: Path) -> dict[str, str]:
    """Return the settings that are taken over. Git parses this one file, without includes, and runs nothing."""
    file = anyio.Path(config)
    if not await file.is_file() or (await file.stat()).st_size > MAX_CONFIG_BYTES:
        return {}
    listed = await _run(["config", "--file", str(config), "--no-includes", "--list", "-z"], config.parent, {})
    found: dict[str, str] = {}
    for entry in listed.text.split("\0"):
        name, _, value = entry.partition("\n")
        if value.lower() in HARMLESS.get(name.lower(), ()):
            found[name.lower()] = value.lower()
    return found


async def git(repository: Repository, folder: Path, arguments: Sequence[str]) -> Output:
    """Run git on a repository through its private git directory.

    Raises:
        InvalidInputError: git refused, or took too long.
        MissingFileError: git is not installed.
    """
    places = {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(repository.top)}
    return await _run(arguments, repository.top, places)


async def _run(arguments: Sequence[str], folder: Path, places: Mapping[str, str]) -> Output:
    output, complaint, truncated = bytearray(), bytearray(), False
    try:
        with anyio.fail_after(DEADLINE_S):
            process = await anyio.open_process(
                ["git", "--no-pager", *arguments],
                cwd=folder,
                env={**ENVIRONMENT, **places},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            async with process, anyio.create_task_group() as tasks:
                tasks.start_soon(_collect, process.stderr, complaint, 4096)
                truncated = await _collect(process.stdout, output, MAX_OUTPUT_BYTES)
                if truncated:
                    process.kill()
                await process.wait()
    except FileNotFoundError:
        raise MissingFileError(str(folder), "git is not installed") from None
    except TimeoutError:
        raise InvalidInputError(f"git took longer than {DEADLINE_S:g} s; choose a smaller folder") from None
    if not truncated and process.returncode != 0:
        raise InvalidInputError(complaint.decode("utf-8", "replace").strip().partition("\n")[0] or "git failed")
    return Output(output.decode("utf-8", "replace"), truncated)


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
