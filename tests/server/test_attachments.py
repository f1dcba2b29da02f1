"""Files through every door: taken by their bytes, given to the model, served as downloads, kept, copied and erased."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from files.samples import docx, gif, png
from server.place import new_session, served
from windowpane.client import Client
from windowpane.context.messages import Attachment, Message, NewFile, UserMessage
from windowpane.errors import InvalidInputError, NotFoundError
from windowpane.models.scripted import Call, Reply
from windowpane.server.middleware.limits import MAX_BODY_BYTES
from windowpane.testing import World, drain
from windowpane.tools.base import ToolOutput
from windowpane.tools.functions import FunctionTool

IMAGE = png(64, 48, noise=3000)
DATA = base64.b64encode(IMAGE).decode()
URL = f"data:image/png;base64,{DATA}"


def says(world: World, *replies: Reply | str) -> None:
    world.says(*replies)
    world.model.inputs = ("image",)


def attached(messages: Sequence[Message]) -> list[Attachment]:
    """Return the files of a conversation."""
    return [file for message in messages if isinstance(message, UserMessage) for file in message.attachments]


def given(world: World, call: int = -1) -> list[tuple[str, str, list[str]]]:
    """Return what the model was given: role, text, and the bytes of files, by name."""
    received = world.model.calls[call]
    return [
        (m.role, m.content, [f"{f.name}: {received.files[f.blob] == DATA}" for f in m.files])
        for m in received.messages
        if m.role != "system"
    ]


async def test_a_file_comes_with_a_message_and_is_served_as_a_download(world: World) -> None:
    says(world, "A cat.", "A page.")
    page = b"<script>alert(1)</script>"
    async with served(world) as http:
        session = await new_session(http)
        files = [{"name": "../cat.png", "data": DATA}]
        sent = await http.post(
            f"/api/sessions/{session}/messages", json={"content": "What is it?", "attachments": files}
        )
        html = [{"name": "page.html", "data": base64.b64encode(page).decode()}]
        await http.post(f"/api/sessions/{session}/messages", json={"content": "", "attachments": html})
        messages = (await http.get(f"/api/sessions/{session}/messages")).json()["messages"]
        [image], [text] = messages[0]["attachments"], messages[2]["attachments"]
        shown = await http.get(f"/api/sessions/{session}/attachments/{image['blob']}")
        hostile = await http.get(f"/api/sessions/{session}/attachments/{text['blob']}")
        missing = await http.get(f"/api/sessions/{session}/attachments/{'0' * 64}")
        preview = await http.post(f"/api/sessions/{session}/preview", json={"content": "", "attachments": files})

    assert sent.json()["outcome"] == "completed"
    assert image == {
        "name": "cat.png",
        "media_type": "image/png",
        "size": len(IMAGE),
        "blob": image["blob"],
        "text": None,
        "width": 64,
        "height": 48,
        "pages": 0,
    }
    assert given(world, 0) == [("user", "What is it?", ["cat.png: True"])]
    assert "<script>alert(1)</script>" in given(world)[-2][1]
    assert (shown.content, shown.headers["content-type"]) == (IMAGE, "image/png")
    assert (hostile.content, hostile.headers["content-type"]) == (page, "application/octet-stream")
    for answer in (shown, hostile):
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert missing.status_code == 404
    assert [file["name"] for file in preview.json()["messages"][-1]["files"]] == ["cat.png"]


@pytest.mark.parametrize("data", [b"\x7fELF\x01\x01", png()[:30], b""], ids=["other", "cut", "empty"])
async def test_what_cannot_be_attached_is_refused_and_nothing_is_lost(world: World, data: bytes) -> None:
    async with served(world) as http:
        session = await new_session(http)
        files = [{"name": "cat.png", "data": base64.b64encode(data).decode()}]
        refused = await http.post(f"/api/sessions/{session}/messages", json={"content": "Hi", "attachments": files})
        view = (await http.get(f"/api/sessions/{session}")).json()
    assert (refused.status_code, "cat.png" in refused.json()["detail"]) == (422, True)
    assert view["turn_count"] == 0


async def test_files_have_a_limit_of_their_own_beside_that_of_bodies(world: World) -> None:
    says(world, "Large.")
    large = png(64, 48, noise=MAX_BODY_BYTES)
    async with served(world) as http, Client(str(http.base_url)) as pane:
        session = await pane.sessions.create()
        turn = await pane.ask(session.id, "Look", attachments=[NewFile("large.png", large)])
        [image] = attached((await pane.sessions.messages(session.id)).messages)
        assert await pane.sessions.attachment(session.id, image.blob) == large
    assert turn.outcome == "completed"
    async with world.pane(attachment_bytes=1000) as pane:
        session = await pane.sessions.create()
        with pytest.raises(InvalidInputError, match="1,000 is the limit"):
            await drain(pane.turn(session.id, "Look", attachments=[NewFile("cat.png", IMAGE)]))


async def test_openais_client_sends_images_and_files_with_chat(world: World) -> None:
    says(world, "A cat.")
    letter = base64.b64encode(docx("Dear Ada,")).decode()
    async with served(world) as http, openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="any") as client:
        answer = await client.chat.completions.create(
            model="pane",
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "First?"},
                        {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
                    ],
                },
                {"role": "assistant", "content": "A cat."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "And this?"},
                        {"type": "image_url", "image_url": {"url": URL}},
                        {"type": "file", "file": {"filename": "letter.docx", "file_data": letter}},
                    ],
                },
            ],
        )
        url: Any = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}
        with pytest.raises(openai.BadRequestError, match="other addresses are not fetched"):
            await client.chat.completions.create(model="pane", messages=[{"role": "user", "content": [url]}])
    assert answer.choices[0].message.content == "A cat."
    first, reply, words, last = given(world)
    assert (first, reply) == (("user", "First?", ["file.png: True"]), ("assistant", "A cat.", []))
    assert "Dear Ada," in words[1]
    assert last == ("user", "And this?", ["file.png: True"])


async def test_openais_client_sends_images_with_responses(world: World) -> None:
    says(world, "A cat.")
    async with served(world) as http, openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="any") as client:
        answer = await client.responses.create(
            model="pane",
            input=[
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "What?"},
                        {"type": "input_image", "image_url": URL, "detail": "auto"},
                        {"type": "input_file", "filename": "a.gif", "file_data": _data_url(gif(), "image/gif")},
                    ],
                }
            ],
        )
    assert answer.output_text == "A cat."
    assert given(world) == [("user", "What?", ["file.png: True", "a.gif: False"])]


def _data_url(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


async def test_anthropics_client_sends_images_and_documents_and_results_with_them(world: World) -> None:
    says(world, Reply("Let me see.", calls=(Call("client__shot", "{}", id="c1"),)), "A cat.")
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
    note: Any = {
        "type": "document",
        "title": "note.txt",
        "source": {"type": "text", "media_type": "text/plain", "data": "Buy milk."},
    }
    asked: Any = {"role": "user", "content": [image, note, {"type": "text", "text": "What?"}]}
    tools: Any = [{"name": "shot", "input_schema": {"type": "object"}}]
    async with (
        served(world) as http,
        anthropic.AsyncAnthropic(base_url=f"{http.base_url}/anthropic", api_key="any") as client,
    ):
        counted = await client.messages.count_tokens(model="pane", messages=[asked], tools=tools)
        first = await client.messages.create(model="pane", max_tokens=99, messages=[asked], tools=tools)
        use: Any = first.content[-1]
        result: Any = {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": use.id, "content": [image]}],
        }
        told: Any = {"role": "assistant", "content": [block.to_dict() for block in first.content]}
        answer = await client.messages.create(model="pane", max_tokens=99, messages=[asked, told, result], tools=tools)
    assert counted.input_tokens > 255
    assert [block.to_dict()["text"] for block in answer.content] == ["A cat."]
    words, said, _, shot = given(world)
    assert "Buy milk." in words[1]
    assert said == ("user", "What?", ["file.png: True"])
    assert shot == ("tool", "", ["file.png: True"])


async def test_images_that_tools_return_reach_the_model_and_one_that_takes_none_is_told(world: World) -> None:
    async def shoot(_: object) -> ToolOutput:
        return ToolOutput("[image image/png]", files=(NewFile("screen.png", IMAGE), NewFile("odd", b"\x00")))

    tools = [FunctionTool(name="shoot", run=shoot, permission="not_required")]
    world.toolbox.put("browser", tools)
    asks = Reply("", calls=(Call("browser__shoot", "{}", id="c1"),))
    says(world, asks, "A page.", "Still.")
    async with world.pane() as pane:
        session = await pane.sessions.create()
        await drain(pane.turn(session.id, "Look"))
        seen = given(world)[-1]
        await drain(pane.turn(session.id, "Again"))
        again = given(world)[2]
        world.says(asks, "I cannot see.")
    async with world.pane() as pane:
        session = await pane.sessions.create()
        await drain(pane.turn(session.id, "Look"))
    assert seen == again == ("tool", "[image image/png]", ["screen.png: True"])
    assert given(world)[-1] == (
        "tool",
        "[image image/png]\n[screen.png was returned, but this model takes no images: you cannot see it]",
        [],
    )


async def test_files_are_exported_imported_forked_retried_and_erased_with_their_session(world: World) -> None:
    says(world, "A cat.", "A letter.", "Again.")
    letter = docx("The secret word is mandolin.")
    async with world.pane() as pane:
        session = await pane.sessions.create()
        await drain(pane.turn(session.id, "First", attachments=[NewFile("cat.png", IMAGE)]))
        await drain(pane.turn(session.id, "Second", attachments=[NewFile("letter.docx", letter)]))
        document = await pane.sessions.export(session.id)
        copy = await pane.sessions.import_(document)
        fork = await pane.sessions.fork(session.id, 2)
        messages = (await pane.sessions.messages(copy.id)).messages
        image, text = attached(messages)
        assert await pane.sessions.attachment(copy.id, image.blob) == IMAGE
        assert await pane.sessions.attachment(copy.id, text.blob) == letter
        assert await pane.sessions.attachment(fork.id, image.blob) == IMAGE
        with pytest.raises(NotFoundError):
            await pane.sessions.attachment(fork.id, text.blob)
        assert (await pane.turns.rebuild(copy.id, 2)).identical
        forged = {**document.blobs, image.blob: document.blobs[text.blob]}
        with pytest.raises(InvalidInputError):
            await pane.sessions.import_(_with(document, forged))
        await pane.sessions.clear_history(session.id)
        with pytest.raises(NotFoundError):
            await pane.sessions.attachment(session.id, image.blob)
        left = (await pane.sessions.export(session.id)).blobs.values()
    assert not any(DATA in text or "mandolin" in text for text in left)


def _with(document: Any, blobs: Any) -> Any:
    return replace(document, blobs=blobs)


async def test_the_same_key_with_another_file_is_refused(world: World) -> None:
    says(world, "A cat.")
    async with served(world) as http:
        session = await new_session(http)
        body = {"content": "Look", "attachments": [{"name": "cat.png", "data": DATA}]}
        other = {"content": "Look", "attachments": [{"name": "cat.png", "data": base64.b64encode(gif()).decode()}]}
        headers = {"Idempotency-Key": "k"}
        path = f"/api/sessions/{session}/messages"
        first, again, changed = [await http.post(path, json=each, headers=headers) for each in (body, body, other)]
    assert [first.status_code, again.status_code, changed.status_code] == [200, 200, 409]
    assert len(world.model.calls) == 1


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents")
