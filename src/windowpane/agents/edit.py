"""Change an agent's files from outside: the file on disk is the truth, and no edit is lost.

Everything is read as an agent reads it before it is written, so what cannot be used is refused with line and reason,
and nothing of it reaches the disk. A change names the revision that it is a change of, the hash of the file's bytes;
when the file says something else by now, the change is refused. A file is replaced whole, so no reader sees half of
one. Only files that belong to an agent can be named, and links that lead out of its folder are not followed.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from windowpane.agents.base import Agent, FileEntry
from windowpane.agents.files import MAX_BYTES
from windowpane.agents.items import ItemFile, read_reference, read_rule, render_item
from windowpane.agents.manifest import MANIFEST, Manifest, read_manifest, read_mcp_json
from windowpane.agents.prompts import read_prompt, read_site
from windowpane.agents.rewrite import Value, rewritten_front, rewritten_json, rewritten_yaml
from windowpane.agents.tree import TreeError
from windowpane.context.agents import Problem
from windowpane.context.items import IncludeMode, ItemRef, ItemType, Permission, Reference, Rule
from windowpane.errors import (
    AgentError,
    AlreadyThereError,
    InvalidFileError,
    InvalidInputError,
    MissingFileError,
    StaleRevisionError,
    UnknownItemError,
)
from windowpane.errors.base import why_unreadable

ANY = "*"
"""The revision of whatever is there."""

SERVERS = "mcp.json"
FOLDERS: Mapping[str, str] = {"rule": "rules", "reference": "references"}

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SITE = re.compile(r"sites/[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}")


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it is on disk. `revision` is another one as soon as a byte of it is another."""

    file: str
    text: str
    revision: str


@dataclass(frozen=True, slots=True)
class ToolChange:
    """What a tool's own settings become. None takes one away, so that the server's counts."""

    include: IncludeMode | None = None
    permission: Permission | None = None


def item_text(agent: Agent, ref: ItemRef) -> FileText:
    """Return the file that holds a rule or a reference.

    Raises:
        UnknownItemError: the agent has no such item.
        MissingFileError: its file is gone, or cannot be read.
    """
    return read_text(agent, _file_of(agent, ref))


def create_item(agent: Agent, item: Rule | Reference) -> FileText:
    """Write a new rule or reference.

    Raises:
        AlreadyThereError: the agent has one of that name, or a file where it would be.
        InvalidFileError: it could not be read again.
    """
    return create_item_file(agent, item.ref, render_item(item))


def create_item_file(agent: Agent, ref: ItemRef, text: str) -> FileText:
    """Write a new rule or reference as its whole file, front matter and all.

    Raises:
        AlreadyThereError: the agent has one of that name, or a file where it would be.
        InvalidFileError: it is not that item, or none that can be used.
    """
    if not _NAME.fullmatch(ref.name):
        raise InvalidInputError("a name may hold only letters, digits, _ and -, and no more than 100 of them")
    file = f"{FOLDERS[ref.type]}/{ref.name}.md"
    _check_item(file, text, ref.type, ref.name)
    with suppress(UnknownItemError):
        raise AlreadyThereError(str(ref), _file_of(agent, ref))
    return create_file(agent, file, text)


def put_item_file(agent: Agent, ref: ItemRef, text: str, *, revision: str) -> FileText:
    """Replace the whole file of a rule or a reference.

    Raises:
        UnknownItemError: the agent has no such item.
        InvalidFileError: it is not that item any more, or none that can be used.
        StaleRevisionError: the file is not the one of `revision`.
    """
    file = _file_of(agent, ref)
    _check_item(file, text, ref.type, ref.name)
    return replace_file(agent, file, text, revision=revision)


def change_item(
    agent: Agent, ref: ItemRef, changes: Mapping[str, Value], *, text: str | None, revision: str
) -> FileText:
    """Change single settings of a rule or a reference, or its text. The rest of the file stays as it is written.

    Raises:
        UnknownItemError: the agent has no such item.
        InvalidFileError: it could not be read any more.
        StaleRevisionError: the file is not the one of `revision`.
    """
    before = item_text(agent, ref)
    if revision not in (ANY, before.revision):
        raise StaleRevisionError(before.file, before.revision)
    try:
        after = rewritten_front(before.text, changes, text)
    except TreeError as error:
        raise InvalidFileError(before.file, ((error.line, error.reason),)) from None
    _check_item(before.file, after, ref.type, ref.name)
    return replace_file(agent, before.file, after, revision=before.revision)


def delete_item(agent: Agent, ref: ItemRef, *, revision: str) -> None:
    """Delete the file of a rule or a reference.

    Raises:
        UnknownItemError: the agent has no such item.
        StaleRevisionError: the file is not the one of `revision`.
    """
    _deleted(agent, _file_of(agent, ref), revision)


def prompt_file(name: str) -> str:
    """Return the file of a prompt: `core`, `default_site`, or `sites/` and a host.

    Raises:
        InvalidInputError: no prompt can have this name.
    """
    if name not in ("core", "default_site") and not _SITE.fullmatch(name):
        raise InvalidInputError("a prompt is core, default_site, or sites/ and the host it is for")
    return f"prompts/{name}.md"


def put_prompt(agent: Agent, name: str, text: str, *, revision: str | None) -> FileText:
    """Write a prompt. Without a revision it is a new one.

    Raises:
        AlreadyThereError: there is one already, and no revision was given.
        InvalidFileError: it could not be used.
        StaleRevisionError: the file is not the one of `revision`.
    """
    file = prompt_file(name)
    _check_prompt(file, text)
    return create_file(agent, file, text) if revision is None else replace_file(agent, file, text, revision=revision)


def delete_prompt(agent: Agent, name: str, *, revision: str) -> None:
    """Delete a prompt. The core prompt cannot be deleted: the agent does not start without.

    Raises:
        MissingFileError: there is no such prompt.
        StaleRevisionError: the file is not the one of `revision`.
    """
    if name == "core":
        raise InvalidInputError("the core prompt cannot be deleted: the agent does not start without one; change it")
    _deleted(agent, prompt_file(name), revision)


def put_manifest(agent: Agent, text: str, *, revision: str) -> FileText:
    """Replace the agent's `agent.yaml`. What was wrong with it already may stay so; nothing may become wrong.

    Raises:
        InvalidFileError: something in it cannot be used.
        StaleRevisionError: the file is not the one of `revision`.
    """
    _check_manifest(agent, MANIFEST, text)
    return replace_file(agent, MANIFEST, text, revision=revision)


def server_text(agent: Agent, server: str) -> FileText:
    """Return the file that describes a tool server: `agent.yaml`, or `mcp.json` when it is not in there.

    Raises:
        MissingFileError: neither describes it.
    """
    for file in (MANIFEST, SERVERS):
        with suppress(MissingFileError):
            found = read_text(agent, file)
            if server in _manifest(agent, file, found.text).servers:
                return found
    raise MissingFileError(server, "the agent's files describe no such tool server")


def change_server(
    agent: Agent,
    server: str,
    settings: Mapping[str, Value],
    tools: Mapping[str, ToolChange],
    *,
    revision: str,
) -> FileText:
    """Change how a server's tools are included and permitted, or whether it is used. The rest stays as it is written.

    Raises:
        MissingFileError: the agent's files describe no such server.
        InvalidFileError: the file cannot be changed like this.
        StaleRevisionError: the file is not the one of `revision`.
    """
    before = server_text(agent, server)
    if revision not in (ANY, before.revision):
        raise StaleRevisionError(before.file, before.revision)
    changes: dict[tuple[str, ...], Value] = {(name,): value for name, value in settings.items()}
    if "enabled" in settings:
        changes["disabled",] = None
    for tool, change in tools.items():
        changes["tools", tool, "include"] = change.include
        changes["tools", tool, "permission"] = change.permission
    try:
        after = _rewritten(before, server, changes)
    except TreeError as error:
        raise InvalidFileError(before.file, ((error.line, error.reason),)) from None
    _check_manifest(agent, before.file, after)
    return replace_file(agent, before.file, after, revision=before.revision)


def file_text(agent: Agent, file: str) -> FileText:
    """Return any file that the agent reads, also one that cannot be used.

    Raises:
        MissingFileError: the agent reads no such file, or it is no text.
    """
    return read_text(agent, _entry(agent, file).file)


def put_file(agent: Agent, file: str, text: str, *, revision: str) -> FileText:
    """Replace any file that the agent reads, so that one that could not be used becomes one that can.

    Raises:
        MissingFileError: the agent reads no such file.
        InvalidFileError: it cannot be used, or the item that it holds would have another name.
        StaleRevisionError: the file is not the one of `revision`.
    """
    entry = _entry(agent, file)
    match entry.kind:
        case "rule" | "reference":
            _check_item(file, text, entry.kind, entry.name)
        case "manifest" | "servers":
            _check_manifest(agent, file, text)
        case "core" | "default_site" | "site":
            _check_prompt(file, text)
    return replace_file(agent, file, text, revision=revision)


def delete_file(agent: Agent, file: str, *, revision: str) -> None:
    """Delete a file that the agent reads as a rule or a reference, also one that cannot be used.

    Raises:
        MissingFileError: the agent reads no such file.
        InvalidInputError: it is neither a rule's nor a reference's.
        StaleRevisionError: the file is not the one of `revision`.
    """
    if _entry(agent, file).kind not in FOLDERS:
        raise InvalidInputError(f"{file} cannot be deleted like this: only files of rules and references can")
    _deleted(agent, file, revision)


def read_text(agent: Agent, file: str) -> FileText:
    """Return a file of the agent's folder.

    Raises:
        MissingFileError: there is none, or it cannot be read.
    """
    try:
        content = _inside(agent, file).read_bytes()
        return FileText(file, content.decode(), revision_of(content))
    except FileNotFoundError:
        raise MissingFileError(file) from None
    except (OSError, UnicodeDecodeError) as error:
        raise MissingFileError(file, f"it cannot be read: {why_unreadable(error)}") from None


def revision_of(content: bytes) -> str:
    """Return the name of these bytes."""
    return hashlib.sha256(content).hexdigest()[:32]


def _file_of(agent: Agent, ref: ItemRef) -> str:
    found = next((entry for entry in agent.files if entry.kind == ref.type and entry.name == ref.name), None)
    if found is None:
        raise UnknownItemError(str(ref))
    return found.file


def _entry(agent: Agent, file: str) -> FileEntry:
    found = next((entry for entry in agent.files if entry.file == file), None)
    if found is None:
        raise MissingFileError(file, "the agent reads no such file")
    return found


def _check_item(file: str, text: str, kind: ItemType, name: str | None) -> None:
    """Refuse what cannot be used, or would have another name than it has now; one that has none may take any."""
    read = read_rule if kind == "rule" else read_reference
    said: ItemFile = read(file, text, "")
    if said.item is None:
        raise _unusable(file, said.problems)
    if name is not None and said.item.name != name:
        raise InvalidFileError(file, ((said.name_line, f"it names itself {said.item.name!r} and should be {name!r}"),))


def _check_prompt(file: str, text: str) -> None:
    read = read_site(file, text) if file.startswith("prompts/sites/") else read_prompt(file, text)
    if read.text is None:
        raise _unusable(file, read.problems)


def _check_manifest(agent: Agent, file: str, text: str) -> None:
    known = {problem.reason for problem in agent.problems if problem.file == file}
    new = [problem for problem in _manifest(agent, file, text).problems if problem.reason not in known]
    if new:
        raise _unusable(file, new)


def _manifest(agent: Agent, file: str, text: str) -> Manifest:
    variables = {**os.environ, "WINDOWPANE_PYTHON": sys.executable, "AGENT_DIR": agent.folder}
    if file == MANIFEST:
        return read_manifest(file, text, variables, agent.folder, agent.name)
    return read_mcp_json(file, text, variables, agent.folder)


def _rewritten(before: FileText, server: str, changes: Mapping[tuple[str, ...], Value]) -> str:
    if before.file == MANIFEST:
        return rewritten_yaml(before.text, {("mcpServers", server, *path): value for path, value in changes.items()})
    # The file may list its servers under either name; where both have one, `mcpServers` counts.
    top = "mcpServers" if server in json.loads(before.text).get("mcpServers", {}) else "servers"
    return rewritten_json(before.text, {(top, server, *path): value for path, value in changes.items()})


def _unusable(file: str, problems: Iterable[Problem]) -> InvalidFileError:
    return InvalidFileError(file, tuple((problem.line, problem.reason) for problem in problems))


def create_file(agent: Agent, file: str, text: str) -> FileText:
    """Write a new file into the agent's folder, whatever it says.

    Raises:
        AlreadyThereError: there is one of that name.
    """
    content = _encoded(file, text)
    with _locked(agent):
        path = _inside(agent, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _beside(path, content) as new:
            try:
                os.link(new, path)
            except FileExistsError:
                raise AlreadyThereError(file, agent.name) from None
    return FileText(file, text, revision_of(content))


def replace_file(agent: Agent, file: str, text: str, *, revision: str) -> FileText:
    """Replace a file of the agent's folder, whatever it says.

    Raises:
        StaleRevisionError: the file is not the one of `revision`.
    """
    content = _encoded(file, text)
    with _locked(agent):
        path = _inside(agent, file)
        _check_revision(path, file, revision)
        with _beside(path, content, path.stat().st_mode & 0o777) as new:
            new.replace(path)
    return FileText(file, text, revision_of(content))


def _deleted(agent: Agent, file: str, revision: str) -> None:
    with _locked(agent):
        path = _inside(agent, file)
        _check_revision(path, file, revision)
        path.unlink()


def _check_revision(path: Path, file: str, revision: str) -> None:
    try:
        now = revision_of(path.read_bytes())
    except FileNotFoundError:
        if revision == ANY:
            raise MissingFileError(file) from None
        raise StaleRevisionError(file, None) from None
    if revision not in (ANY, now):
        raise StaleRevisionError(file, now)


def _encoded(file: str, text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InvalidFileError(file, ((line, "half of a character cannot be written"),)) from None
    if len(content) > MAX_BYTES:
        raise InvalidFileError(file, ((None, f"{len(content):,} bytes; no more than {MAX_BYTES:,} are read"),))
    return content


def _inside(agent: Agent, file: str) -> Path:
    folder = Path(agent.folder).resolve()
    path = (folder / file).resolve()
    if not path.is_relative_to(folder):
        raise InvalidInputError(f"{file} leads out of the agent's folder; edit it where it is")
    return path


@contextmanager
def _locked(agent: Agent) -> Generator[None]:
    """Let one change of a folder happen after the other, in all processes."""
    try:
        folder = os.open(agent.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)
    except OSError as error:
        raise AgentError(f"the folder of agent {agent.name!r} cannot be written: {error.strerror}") from None


@contextmanager
def _beside(path: Path, content: bytes, mode: int = 0o644) -> Generator[Path]:
    """Give a complete and durable file beside the one that is meant; what is left of it at the end is removed."""
    new = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        yield new
    finally:
        new.unlink(missing_ok=True)
