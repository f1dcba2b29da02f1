"""Files of AG-UI frontends, written with the protocol's own types."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import (
    AudioPart,
    ContentPart,
    DataSource,
    DocumentPart,
    FileSource,
    ImagePart,
    Message,
    RunAgentInput,
    TextPart,
    Tool,
    ToolMessage,
    UrlSource,
    UserMessage,
)

from files.samples import docx, png
from server.place import problem_in, served
from windowpane.files.read import MAX_FILES
from windowpane.models.scripted import Call, Reply
from windowpane.server.middleware.limits import MAX_BODY_BYTES
from windowpane.testing import World

PATH = "/api/agents/pane/ag-ui"
IMAGE = png(64, 48, noise=3000)


def data(content: bytes, mime_type: str = "image/png") -> DataSource:
    return DataSource(value=base64.b64encode(content).decode(), mime_type=mime_type)


def body(*messages: Message, run: str = "r1", tools: Sequence[Tool] = ()) -> dict[str, Any]:
    given = RunAgentInput(thread_id="t", run_id=run, messages=list(messages), tools=list(tools))
    return given.model_dump(mode="json", by_alias=True, exclude_none=True)


def asked(*parts: ContentPart) -> UserMessage:
    return UserMessage(id="m1", content=list(parts))


def given(world: World) -> list[tuple[str, str, list[tuple[str, bytes]]]]:
    """Return what the model was given last: role, text, and files."""
    received = world.model.calls[-1]
    return [
        (m.role, m.content, [(f.name, base64.b64decode(received.files[f.blob])) for f in m.files])
        for m in received.messages
        if m.role != "system"
    ]


def says(world: World, *replies: Reply | str) -> None:
    world.says(*replies)
    world.model.inputs = ("image",)


async def test_images_and_documents_of_a_message_reach_the_model(world: World) -> None:
    says(world, "Seen.")
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    address = UrlSource(value=f"data:image/png;base64,{base64.b64encode(png()).decode()}")
    message = asked(
        TextPart(text="What is "),
        ImagePart(source=data(IMAGE)),
        ImagePart(source=address, metadata={"filename": "../cat.png"}),
        DocumentPart(source=data(docx("Dear Ada,"), word), metadata={"filename": "letter.docx"}),
        TextPart(text="this?"),
    )
    async with served(world) as http:
        answer = await http.post(PATH, json=body(message))
        session = answer.headers["windowpane-session"]
        messages = (await http.get(f"/api/sessions/{session}/messages")).json()["messages"]

    assert '"delta":"Seen."' in answer.text
    words, last = given(world)
    assert "Dear Ada," in words[1]
    assert last == ("user", "What is this?", [("file.png", IMAGE), ("cat.png", png())])
    assert [(file["name"], file["media_type"]) for file in messages[0]["attachments"]] == [
        ("file.png", "image/png"),
        ("cat.png", "image/png"),
        ("letter.docx", word),
    ]


async def test_an_image_without_words_and_larger_than_other_bodies_is_taken(world: World) -> None:
    says(world, "Large.")
    large = png(64, 48, noise=MAX_BODY_BYTES)
    async with served(world) as http:
        answer = await http.post(PATH, json=body(asked(ImagePart(source=data(large)))))

    assert '"delta":"Large."' in answer.text
    assert given(world) == [("user", "", [("file.png", large)])]


async def test_the_result_of_a_frontends_tool_brings_an_image(world: World) -> None:
    says(world, Reply(calls=(Call("client__shot", "{}", id="c1"),)), "Seen.")
    question = UserMessage(id="m1", content="Look")
    shot = ToolMessage(id="m2", tool_call_id="c1", content=[TextPart(text="the screen"), ImagePart(source=data(IMAGE))])
    tools = [Tool(name="shot", description="Takes a picture.", parameters={"type": "object"})]
    async with served(world) as http:
        await http.post(PATH, json=body(question, tools=tools))
        answer = await http.post(PATH, json=body(question, shot, run="r2", tools=tools))

    assert '"delta":"Seen."' in answer.text
    assert [(role, files) for role, _, files in given(world) if files] == [("tool", [("file.png", IMAGE)])]
    assert "the screen" in [text for role, text, _ in given(world) if role == "tool"]


BYTES = "Send the bytes as a data: address with base64 (data:image/png;base64,…): other addresses are not fetched."
KEPT = "Send the file itself, as a source of type data: files that a provider keeps are not read here."


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (ImagePart(source=UrlSource(value="http://169.254.169.254/latest")), f"content[1]: {BYTES}"),
        (ImagePart(source=FileSource(value="file-1", provider="openai")), f"content[1]: {KEPT}"),
        (
            AudioPart(source=data(b"RIFF", "audio/wav")),
            "content[1]: only text, images and documents can be sent here, not audio",
        ),
        (
            ImagePart(source=DataSource(value="!", mime_type="image/png")),
            "content[1]: The base64 of the file cannot be read.",
        ),
    ],
    ids=["address", "handle", "audio", "not base64"],
)
async def test_a_part_that_cannot_be_taken_is_a_problem_that_names_it(
    world: World, part: ContentPart, why: str
) -> None:
    async with served(world) as http:
        problem = problem_in(await http.post(PATH, json=body(asked(TextPart(text="Hi"), part))))
        shown = (await http.get("/api/sessions")).json()["sessions"]

    assert (problem["status"], problem["code"], problem["detail"]) == (422, "invalid_input", why)
    assert [session["turn_count"] for session in shown] == [0] * len(shown)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([ImagePart(source=data(b"\x7fELF\x01\x01"))], "file.png"),
        ([ImagePart(source=data(png()))] * (MAX_FILES + 1), "20 files at most"),
    ],
    ids=["another kind", "too many"],
)
async def test_the_limits_of_files_are_those_of_every_door(world: World, parts: list[ContentPart], why: str) -> None:
    async with served(world) as http:
        refused = problem_in(await http.post(PATH, json=body(asked(*parts))))

    assert (refused["status"], refused["code"]) == (422, "invalid_input")
    assert why in refused["detail"]
    assert world.model.calls == []
