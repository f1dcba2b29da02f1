"""Laws of files: what goes in comes out, byte for byte, through every door; what is refused changes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from files.samples import docx, gif, jpeg, pdf, png, webp
from patience import PATIENCE_S
from server.place import engine_of, listening, new_session
from windowpane.api.export import EXPORT, read_export
from windowpane.context.messages import Attachment, Message, NewFile, UserMessage
from windowpane.errors import InvalidInputError
from windowpane.files.read import MAX_FILES, file_name
from windowpane.files.sniff import DOCX_TYPE
from windowpane.local.pane import LocalPane
from windowpane.models.scripted import Reply, ScriptedModel
from windowpane.server.app import create_app
from windowpane.testing import World, drain

PROPERTY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
INERT = {"image/png", "image/jpeg", "image/gif", "image/webp", "application/octet-stream"}
"""The types that a file may be served as: none of them is a page, a script or a document with scripts in it."""

LIMIT_BYTES = 5000
DOORS = ("chat", "responses", "anthropic")
WHY = ("can be attached", "is empty", "send fewer", "at most 20")
Typed = tuple[NewFile, str]
"""A file, and what its bytes are."""

NAMES = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(
    ["a.html", "../../etc/passwd", 'a";filename="b.html', "x\r\nSet-Cookie: a=b", "日本語.pdf", ".", "a" * 300]
)
SIZES = st.tuples(st.integers(1, 4000), st.integers(1, 4000))
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=60)
LINES = st.lists(st.text("abc .,", min_size=1, max_size=30), min_size=1, max_size=2)
PLAIN = WORDS | st.sampled_from(
    ["<script>alert(1)</script>", "<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", "%!PS", "#!/bin/sh"]
)
Made = tuple[bytes, str]
BYTES: st.SearchStrategy[Made] = st.one_of(
    PLAIN.map(lambda words: (words.encode(), "text/plain")),
    PLAIN.map(lambda words: (words.encode("utf-16"), "text/plain")),
    st.integers(0, 300).map(lambda noise: (png(3, 2, noise=noise), "image/png")),
    SIZES.map(lambda size: (jpeg(*size), "image/jpeg")),
    SIZES.map(lambda size: (gif(*size), "image/gif")),
    SIZES.map(lambda size: (webp(*size), "image/webp")),
    LINES.map(lambda lines: (docx(*lines), DOCX_TYPE)),
    LINES.map(lambda lines: (pdf(*lines), "application/pdf")),
)
FILES: st.SearchStrategy[list[Typed]] = st.lists(
    st.tuples(NAMES, BYTES).map(lambda made: (NewFile(made[0], made[1][0]), made[1][1])), min_size=1, max_size=3
)
NOT_TAKEN = st.tuples(
    st.sampled_from([b"", b"\x7fELF", b"MZ", b"PK\x03\x04", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89", b"RIFF"]),
    st.binary(max_size=60),
).map(lambda parts: b"\0".join(parts))
REFUSED: st.SearchStrategy[list[NewFile]] = st.one_of(
    NOT_TAKEN.map(lambda data: [NewFile("fine.txt", b"fine"), NewFile("bad.png", data)]),
    st.just([NewFile("empty.txt", b"")]),
    st.integers(1, 9).map(lambda more: [NewFile("a.txt", b"a")] * (MAX_FILES + more)),
    st.integers(1, 999).map(lambda more: [NewFile("a.txt", b"a" * LIMIT_BYTES), NewFile("b.txt", b"b" * more)]),
)
CLAIMED = st.sampled_from(["image/png", "text/html", "application/pdf", "application/x-sh"])
"""What a client says that its file is. It is not believed."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    model = ScriptedModel("test", [Reply("Yes.")] * 1000, inputs=("image", "pdf"))
    return World(tmp_path / "agents", model=model)


@pytest.fixture
async def pane(world: World) -> AsyncGenerator[LocalPane]:
    async with world.pane(attachment_bytes=LIMIT_BYTES) as pane:
        yield pane


@pytest.fixture
async def http(world: World) -> AsyncGenerator[httpx2.AsyncClient]:
    app = create_app(engine_of(world, attachment_bytes=LIMIT_BYTES))
    async with listening(app) as address, httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client:
        yield client


def attached(messages: Sequence[Message]) -> list[Attachment]:
    return [file for message in messages if isinstance(message, UserMessage) for file in message.attachments]


def told(files: Sequence[Typed]) -> list[tuple[str, str, int]]:
    return [(file_name(file.name), media_type, len(file.data)) for file, media_type in files]


def found(files: Sequence[Attachment]) -> list[tuple[str, str, int]]:
    return [(file.name, file.media_type, file.size) for file in files]


def for_the_model(files: Sequence[Typed]) -> list[tuple[str, bytes]]:
    """Return what a model that takes images and PDF is given of files as they are. It reads the words of others."""
    return [(kind, file.data) for file, kind in files if kind.startswith("image/") or kind == "application/pdf"]


def given_to_the_model(world: World) -> list[tuple[str, bytes]]:
    """Return the files that the last call of the model came with: their types and their bytes."""
    received = world.model.calls[-1]
    return [
        (file.media_type, base64.b64decode(received.files[file.blob]))
        for message in received.messages
        for file in message.files
    ]


@PROPERTY
@given(files=FILES)
async def test_files_are_the_same_in_the_session_its_copy_and_its_fork(
    world: World, pane: LocalPane, files: list[Typed]
) -> None:
    session = (await pane.sessions.create()).id
    await drain(pane.turn(session, "Look", attachments=[file for file, _ in files]))
    await drain(pane.turn(session, "And now?"))
    exported = await pane.sessions.export(session)
    written = json.dumps(EXPORT.adapter.dump_python(exported, mode="json"))

    copy = (await pane.sessions.import_(read_export(json.loads(written)))).id
    fork = (await pane.sessions.fork(session, 2)).id

    for each in (session, copy, fork):
        kept = attached((await pane.sessions.messages(each)).messages)
        assert found(kept) == told(files)
        assert [await pane.sessions.attachment(each, file.blob) for file in kept] == [file.data for file, _ in files]
        assert (await pane.turns.rebuild(each, 1)).identical
    again = await pane.sessions.export(copy)
    assert (again.events, again.blobs) == (exported.events, exported.blobs)
    assert given_to_the_model(world) == for_the_model(files)


@PROPERTY
@given(files=FILES)
async def test_files_come_back_over_http_as_the_same_bytes_and_never_as_a_page(
    http: httpx2.AsyncClient, files: list[Typed]
) -> None:
    session = await new_session(http)

    sent = await said(http, session, [file for file, _ in files])

    assert sent.json()["outcome"] == "completed", sent.text
    kept = await kept_files(http, session)
    answers = [await http.get(f"/api/sessions/{session}/attachments/{file['blob']}") for file in kept]
    assert [(file["name"], file["media_type"], file["size"]) for file in kept] == told(files)
    assert [answer.content for answer in answers] == [file.data for file, _ in files]
    for answer, file in zip(answers, kept, strict=True):
        disposition, _, name = answer.headers["content-disposition"].partition("; filename*=UTF-8''")
        assert disposition == "attachment"
        # Two files of the same bytes are one file: it has the name of either.
        assert unquote(name) in {other["name"] for other in kept if other["blob"] == file["blob"]}
        assert answer.headers["content-type"] in INERT
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]


@PROPERTY
@given(files=FILES, claimed=CLAIMED, door=st.sampled_from(DOORS))
async def test_files_of_other_clients_are_what_their_bytes_are_and_stay_in_the_session(
    world: World, http: httpx2.AsyncClient, files: list[Typed], claimed: str, door: str
) -> None:
    session = await new_session(http)

    answer = await asked(http, door, session, [file for file, _ in files], claimed)

    assert answer.status_code == 200, answer.text
    kept = await kept_files(http, session)
    back = [await http.get(f"/api/sessions/{session}/attachments/{file['blob']}") for file in kept]
    assert [(file["media_type"], file["size"]) for file in kept] == [(kind, size) for _, kind, size in told(files)]
    assert [each.content for each in back] == [file.data for file, _ in files]
    assert given_to_the_model(world) == for_the_model(files)


@PROPERTY
@given(files=REFUSED)
async def test_what_is_refused_is_refused_at_every_door_and_leaves_the_session_as_it_was(
    world: World, http: httpx2.AsyncClient, files: list[NewFile]
) -> None:
    session = await new_session(http)
    before, calls = (await http.get(f"/api/sessions/{session}/export")).json(), len(world.model.calls)

    answers = [await said(http, session, files), await said(http, session, files, "preview")]
    answers += [await asked(http, door, session, files, "image/png") for door in DOORS]
    named = await asked(http, "chat", f"new {session}", files, "image/png")

    after = (await http.get(f"/api/sessions/{session}/export")).json()
    listed = (await http.get("/api/sessions")).json()["sessions"]
    assert [answer.status_code for answer in (*answers, named)] == [422, 422, 400, 400, 400, 400]
    reasons = [_reason(answer.json()) for answer in answers]
    assert [why for why in reasons if not any(word in why for word in WHY)] == []
    assert (after["events"], after["blobs"]) == (before["events"], before["blobs"])
    assert f"new {session}" not in {each["name"] for each in listed}
    assert len(world.model.calls) == calls


@PROPERTY
@given(files=REFUSED)
async def test_what_is_refused_leaves_a_session_of_the_library_as_it_was(
    world: World, pane: LocalPane, files: list[NewFile]
) -> None:
    session = (await pane.sessions.create()).id
    before = await pane.sessions.export(session)

    with pytest.raises(InvalidInputError, match="|".join(WHY)):
        await drain(pane.turn(session, "Look", attachments=files))

    after = await pane.sessions.export(session)
    assert (after.events, after.blobs, world.model.calls) == (before.events, before.blobs, [])


async def kept_files(http: httpx2.AsyncClient, session: str) -> list[Any]:
    """Return the files of the one message that a user sent."""
    messages = (await http.get(f"/api/sessions/{session}/messages")).json()["messages"]
    [kept] = [message["attachments"] for message in messages if message["role"] == "user"]
    return kept


async def said(
    http: httpx2.AsyncClient, session: str, files: Sequence[NewFile], to: str = "messages"
) -> httpx2.Response:
    bodies = [{"name": file.name, "data": coded(file.data)} for file in files]
    return await sent_to(http, f"/api/sessions/{session}/{to}", {"content": "Look", "attachments": bodies})


async def sent_to(http: httpx2.AsyncClient, path: str, body: Any, session: str = "") -> httpx2.Response:
    # Not as `json=`: names may have halves of characters, which JSON can say and UTF-8 cannot.
    headers = {"Content-Type": "application/json"} | ({"Windowpane-Session": session} if session else {})
    return await http.post(path, content=json.dumps(body), headers=headers)


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _reason(body: Any) -> str:
    return body["error"]["message"] if "error" in body else body["detail"]


async def asked(
    http: httpx2.AsyncClient, door: str, session: str, files: Sequence[NewFile], claimed: str
) -> httpx2.Response:
    """Send files with a message as a client of that door does."""
    paths = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/anthropic/v1/messages"}
    said = {"role": "user", "content": [_part(door, file, claimed) for file in files]}
    body: dict[str, Any] = {"model": "pane", "max_tokens": 99, "messages": [said]}
    if door == "responses":
        body = {"model": "pane", "input": [said]}
    return await sent_to(http, paths[door], body, session)


def _part(door: str, file: NewFile, claimed: str) -> dict[str, Any]:
    address = f"data:{claimed};base64,{coded(file.data)}"
    if door == "chat":
        return {"type": "file", "file": {"filename": file.name, "file_data": address}}
    if door == "responses":
        return {"type": "input_file", "filename": file.name, "file_data": address}
    source = {"type": "base64", "media_type": claimed, "data": coded(file.data)}
    return {"type": "document", "title": file.name, "source": source}
