"""Files reach every provider as its protocol has them, are kept once, and every byte of a call has an owner."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from calls.test_ledger import PROVIDERS
from files.samples import pdf, png
from windowpane.context.messages import NewFile
from windowpane.testing import World, drain
from wire.reply import WireReply
from wire.server import running

IMAGE = png(640, 480, noise=4000)
PAPER = pdf("The launch is on Tuesday.")
SEEN = base64.b64encode(IMAGE).decode()
READ = base64.b64encode(PAPER).decode()


def _image_in(provider: str, body: dict[str, Any]) -> Any:
    """Return what stands for the image in a request, as the provider's protocol has it."""
    match provider:
        case "openai" | "ollama":
            return body["messages"][-1]["content"]
        case "responses":
            return body["input"][-1]["content"]
        case "anthropic":
            return [
                {key: value for key, value in part.items() if key != "cache_control"}
                for part in body["messages"][-1]["content"]
            ]
        case _:
            return body["contents"][-1]["parts"]


URL = f"data:image/png;base64,{SEEN}"
EXPECTED: dict[str, Any] = {
    "openai": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": URL}}],
    "responses": [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": URL, "detail": "auto"},
    ],
    "anthropic": [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": SEEN}},
    ],
    "google": [{"text": "What is this?"}, {"inlineData": {"data": SEEN, "mime_type": "image/png"}}],
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents")


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.parametrize("name", EXPECTED)
async def test_an_image_reaches_the_model_is_kept_once_and_its_bytes_are_its_own(world: World, name: str) -> None:
    provider = PROVIDERS[name]
    world.write("agent.yaml", f"model: {provider.model}\nworking_context: false\n")
    answers = [provider.answer(WireReply(("A cat.",))), provider.answer(WireReply(("Still a cat.",)))]
    async with running(*answers) as server:
        world.environ = provider.environ(server.url)
        async with world.pane() as pane:
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, "What is this?", attachments=[NewFile("cat.png", IMAGE)]))
            await drain(pane.turn(session.id, "And now?"))
            record = await pane.turns.call(session.id, 1, 1)
            later = await pane.turns.call(session.id, 2, 1)
            rebuilt = await pane.turns.rebuild(session.id, 1)
            texts = (await pane.sessions.export(session.id)).blobs
            request = await pane.turns.request(session.id, 1)

    first, second = (json.loads(asked.raw) for asked in server.asked)
    assert _image_in(name, _standard(first)) == EXPECTED[name]
    assert SEEN in json.dumps(_standard(second))
    assert record.body == server.asked[0].raw.decode()
    assert later.body == server.asked[1].raw.decode()
    assert [text for text in texts.values() if SEEN[:3000] in text.replace("-", "+").replace("_", "/")] == [SEEN]
    assert record.body is not None
    owned = {(span.kind, span.owner): record.body[span.start : span.end] for span in record.spans}
    assert SEEN in owned["message", "file cat.png"].replace("-", "+").replace("_", "/")
    assert ("model", "its thinking") not in owned
    assert rebuilt.identical
    [message] = [each for each in request.messages if each.part == "message"]
    [file] = message.files
    assert (message.content, file.name, file.media_type) == ("What is this?", "cat.png", "image/png")


def _standard(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body in which base64 is written in the usual alphabet."""
    for content in body.get("contents", ()):
        for part in content["parts"]:
            if "inlineData" in part:
                part["inlineData"]["data"] = part["inlineData"]["data"].replace("-", "+").replace("_", "/")
    return body


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
@pytest.mark.parametrize("name", ["responses", "anthropic", "google"])
async def test_a_pdf_is_sent_as_it_is_where_the_model_takes_it(world: World, name: str) -> None:
    provider = PROVIDERS[name]
    world.write("agent.yaml", f"model: {provider.model}\nworking_context: false\ninputs: [image, pdf]\n")
    async with running(provider.answer(WireReply(("Tuesday.",)))) as server:
        world.environ = provider.environ(server.url)
        async with world.pane() as pane:
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, "When?", attachments=[NewFile("plan.pdf", PAPER)]))
    sent = server.asked[0].raw.decode().replace("-", "+").replace("_", "/")
    assert READ in sent
    assert "The launch is on Tuesday." not in server.asked[0].raw.decode()


async def test_a_model_that_takes_no_files_gets_words_and_notes_and_the_record_says_so(world: World) -> None:
    provider = PROVIDERS["ollama"]
    world.write("agent.yaml", f"model: {provider.model}\nworking_context: false\n")
    files = [NewFile("cat.png", IMAGE), NewFile("plan.pdf", PAPER), NewFile("notes.md", b"# Notes\nBuy milk.")]
    async with running(provider.answer(WireReply(("I cannot see it.",)))) as server:
        world.environ = provider.environ(server.url)
        async with world.pane() as pane:
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, "", attachments=files))
            context = (await pane.turns.request(session.id, 1)).context
    sent = server.asked[0].raw.decode()
    assert SEEN[:200] not in sent
    assert "You cannot see it, because this model takes no images." in sent
    assert "The launch is on Tuesday." in sent
    assert "Buy milk." in sent
    attached = [part for part in context.parts if part.kind == "attached"]
    assert [(part.name, part.status, part.reason) for part in attached] == [
        (
            "cat.png",
            "used",
            "ollama:llama3.2 takes no images, or it is not known whether it does: a note is sent instead",
        ),
        ("plan.pdf", "used", "ollama:llama3.2 takes no PDF: its text is sent instead"),
        ("notes.md", "used", "the text of a file that the user attached"),
    ]
    assert context.settings.inputs == ()
