"""Whatever stands in a file or a span, it is read or named, and importing it again adds nothing."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.errors import RecordedSessionError
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World
from windowpane.xray.importing.files import read_file
from windowpane.xray.importing.otlp import spans_of
from windowpane.xray.importing.spans import sessions_of_spans
from windowpane.xray.importing.told import ToldSession
from windowpane.xray.importing.writer import ImportedSession, Importer
from xray.importing import logs

SAMPLES: tuple[list[Any], ...] = (
    [*logs.claude_old(), *logs.claude_more()],
    logs.claude_new(),
    logs.codex(),
    [logs.langfuse()],
    logs.litellm(),
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "content", "id"]), inner),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn) -> list[Any]:
    """Return a log in which some values are others."""
    documents = json.loads(json.dumps(draw(st.sampled_from(SAMPLES))))
    for _ in range(draw(st.integers(1, 6))):
        value: Any = documents
        while isinstance(value, dict | list) and value:
            key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
            if not isinstance(value[key], dict | list) or not value[key] or draw(st.integers(0, 3)) == 0:
                value[key] = draw(ODD)
                break
            value = cast("Any", value)[key]
    return documents


async def _twice(sessions: list[ToldSession]) -> None:
    async with MemoryStore() as store:
        importer = Importer(store, "local")
        first = [await importer.write(told) for told in sessions]
        again = [await importer.write(told) for told in sessions]
        assert [one.id for one in again] == [one.id for one in first]
        assert sum(one.calls for one in again) == 0
        for one in first:
            log = await store.read(one.id)
            assert [entry.seq for entry in log] == list(range(1, len(log) + 1))


@given(damaged())
@settings(max_examples=150, deadline=None)
def test_a_damaged_log_is_read_as_far_as_it_goes(documents: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
        read = read_file(path)

    anyio.run(_twice, list(read.sessions))


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "gen_ai.input.messages",
                "gen_ai.output.messages",
                "gen_ai.system_instructions",
                "gen_ai.tool.definitions",
                "gen_ai.prompt.0.role",
                "gen_ai.prompt.0.content",
                "gen_ai.usage.input_tokens",
                "gen_ai.response.finish_reasons",
                "gen_ai.conversation.id",
                "gen_ai.request.model",
            ]
        ),
        ODD | ODD.map(json.dumps),
    )
)
@settings(max_examples=100, deadline=None)
def test_spans_with_odd_attributes_are_read_as_far_as_they_go(attributes: dict[str, Any]) -> None:
    told = [
        {"key": name, "value": {"stringValue": value} if isinstance(value, str) else {"kvlistValue": value}}
        for name, value in {"gen_ai.operation.name": "chat", **attributes}.items()
    ]
    times = {"startTimeUnixNano": "1", "endTimeUnixNano": 2}
    span = {"traceId": "a", "spanId": "b", "attributes": told, **times}

    anyio.run(_twice, sessions_of_spans(spans_of({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})))


async def test_what_several_imports_bring_at_once_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in [*logs.claude_old(), *logs.claude_more()]))
    (told,) = read_file(path).sessions
    done: list[ImportedSession] = []

    async def write(store: Store) -> None:
        done.append(await Importer(store, "local").write(told))

    async with (
        SQLiteStore(tmp_path / "data.db") as one,
        SQLiteStore(tmp_path / "data.db") as other,
        anyio.create_task_group() as tasks,
    ):
        for store in (one, other, one, other):
            tasks.start_soon(write, store)

    new, *again = sorted(done, key=lambda imported: imported.known)
    assert (new.calls, new.known) == (len(told.calls), 0)
    assert [(imported.id, imported.calls, imported.known) for imported in again] == [(new.id, 0, new.calls)] * 3


async def test_an_imported_session_brings_no_permission_and_cannot_be_answered(world: World, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps({**line, 'tool_permission': 'always'})}\n" for line in logs.claude_old()))
    async with world.pane() as pane:
        (told,) = read_file(path).sessions
        session = (await Importer(world.store, "local").write(told)).id
        view = await pane.sessions.get(session)
        with pytest.raises(RecordedSessionError):
            await pane.ask(session, "And you?")
        exported = await pane.sessions.export(session)
        copy = await pane.sessions.import_(exported)
        calls = [(await pane.sessions.calls(each)).calls for each in (session, copy.id)]

    assert (view.settings.tool_permission, view.items) == (None, ())
    assert calls[0] == calls[1]
