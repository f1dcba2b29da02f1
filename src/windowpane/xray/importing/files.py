"""Read files that other tools wrote. What a file is, is told by what stands in it, never by its name.

A file has one JSON document a line, or one document that may be a list. A line that cannot be read is named and passed
over; a file that is none of the known ones is named and left alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from windowpane.calls.documents import as_map
from windowpane.xray.importing.claude_code import is_claude_code, read_claude_code
from windowpane.xray.importing.codex import is_codex, read_codex
from windowpane.xray.importing.langfuse import is_langfuse, read_langfuse
from windowpane.xray.importing.litellm import is_litellm, read_litellm
from windowpane.xray.importing.otlp import spans_of
from windowpane.xray.importing.spans import sessions_of_spans
from windowpane.xray.importing.told import ToldSession

SUFFIXES = (".jsonl", ".json", ".ndjson")
"""Which files of a folder are looked at."""

MOST_FILE_BYTES = 256 * 1024 * 1024
MOST_LINE_BYTES = 64 * 1024 * 1024
LOOKED_AT = 200
"""How many documents are looked at for what the file is: logs begin with notes of other kinds."""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read: the file, the line (0: the file itself), and why."""

    path: Path
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What a file holds. `format` is empty when it could not be read; `is_other`: because it is none that is known."""

    path: Path
    format: str
    sessions: tuple[ToldSession, ...]
    unread: tuple[Unread, ...]
    is_other: bool = False


def files_at(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files at these paths; of a folder, those below it that may be logs, in the order of their names."""
    for path in paths:
        if path.is_dir():
            yield from sorted(below for below in path.rglob("*") if below.suffix in SUFFIXES and below.is_file())
        else:
            yield path


def read_file(path: Path) -> ReadFile:
    """Return the sessions of a file, and what of it could not be read."""
    unread: list[Unread] = []
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            return ReadFile(path, "", (), (Unread(path, 0, f"it is larger than {MOST_FILE_BYTES:,} bytes"),))
        documents = list(_documents(path, unread))
    except OSError as error:
        return ReadFile(path, "", (), (Unread(path, 0, error.strerror or str(error)),))
    found = next((name for each in documents[:LOOKED_AT] if (name := _format(each))), "")
    if not found:
        known = "Claude Code, Codex, OpenTelemetry, Langfuse, LiteLLM"
        return ReadFile(path, "", (), (Unread(path, 0, f"it is none of these: {known}"),), is_other=True)
    return ReadFile(path, found, tuple(_sessions(found, documents)), tuple(unread))


def _documents(path: Path, unread: list[Unread]) -> Iterator[Document]:
    """Yield every JSON object of a file: of its lines, or of the one document that it is."""
    with path.open("rb") as file:
        first = file.readline(MOST_LINE_BYTES + 1)
        file.seek(0)
        if first.strip() and _read(first) is None and first.lstrip()[:1] in (b"{", b"["):
            whole = _read(file.read())
            if whole is not None:
                yield from _objects(whole)
                return
            file.seek(0)
        number = 0
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(line) > MOST_LINE_BYTES:
                unread.append(Unread(path, number, f"it is longer than {MOST_LINE_BYTES:,} bytes"))
                while line and not line.endswith(b"\n"):
                    line = file.readline(MOST_LINE_BYTES)
                continue
            if not line.strip():
                continue
            value = _read(line)
            if value is None:
                unread.append(Unread(path, number, "it is no JSON"))
            yield from _objects(value)


def _read(text: bytes) -> object:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return None


def _objects(value: object) -> Iterator[Document]:
    for each in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield as_map(cast("dict[str, Any]", each))


def _format(document: Document) -> str:
    if isinstance(document.get("resourceSpans"), list):
        return "otel"
    if is_codex(document):
        return "codex"
    if is_litellm(document):
        return "litellm"
    if is_langfuse(document):
        return "langfuse"
    return "claude-code" if is_claude_code(document) else ""


def _sessions(name: str, documents: list[Document]) -> list[ToldSession]:
    match name:
        case "claude-code":
            return read_claude_code(documents)
        case "codex":
            return read_codex(documents)
        case "langfuse":
            return read_langfuse(documents)
        case "litellm":
            return read_litellm(documents)
        case _:
            return sessions_of_spans(span for document in documents for span in spans_of(document))
