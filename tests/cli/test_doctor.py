"""`windowpane doctor --ask`: which parts of a request reach a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from ports import free_port
from stores.postgres_server import fresh_database
from windowpane.cli.doctor.checks import Finding, examine
from windowpane.cli.doctor.code_words import WORDS, ask_for_code_words
from windowpane.context.ids import BlobHash
from windowpane.context.messages import Step, Usage
from windowpane.context.request import CallSettings, OfferedTool, ReplyOptions, RequestMessage
from windowpane.models.base import NO_FILES, ModelStep, ModelText
from windowpane.settings import Settings
from wire import openai_chat
from wire.reply import WireReply
from wire.server import Answer, json_answer, running

SETTINGS = CallSettings(model="openai:open")


class Reader:
    """A model that says everything it reads. What its template drops it does not read."""

    name = "openai:open"

    def __init__(self, reads: Callable[[RequestMessage], bool], *, tools: bool = True) -> None:
        self._reads, self._tools = reads, tools

    def remember(self, text: str, own_words: str) -> None:
        pass

    def ignored(self, options: ReplyOptions) -> tuple[str, ...]:
        return ()

    async def stream(
        self,
        messages: Sequence[RequestMessage],
        tools: Sequence[OfferedTool],
        settings: CallSettings,
        files: Mapping[BlobHash, str] = NO_FILES,
    ) -> AsyncGenerator[ModelText | ModelStep]:
        read = [message.content for message in messages if self._reads(message)]
        read += [tool.description for tool in tools if self._tools]
        yield ModelStep(Step(text="\n".join(read), usage=Usage(input_tokens=sum(map(len, read)) // 4)))


async def lost_by(reader: Reader) -> tuple[str, ...]:
    heard = await ask_for_code_words(reader, SETTINGS)
    assert heard is not None
    return heard.lost


async def test_what_a_template_drops_is_named() -> None:
    assert await lost_by(Reader(lambda message: True)) == ()
    assert await lost_by(Reader(lambda message: message.role != "system")) == ("rule", "reference")
    assert await lost_by(Reader(lambda message: True, tools=False)) == ("tool",)
    assert await lost_by(Reader(lambda message: message.part != "selected")) == ("carried text",)


async def model_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> Finding:
    folder = tmp_path / "agents" / "own"
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "core.md").write_text("You help.\n")
    (folder / "agent.yaml").write_text("model: openai:open\n")
    settings = Settings(data=tmp_path, store_url="memory:")
    async with running(*answers) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        found = [finding async for finding in examine(settings, ask=True, wait_s=1)]
    return next(finding for finding in found if finding.subject == "model openai:open")


def reached(reply: WireReply) -> tuple[Answer, Answer]:
    """Return what a server answers that is first asked whether it is there."""
    return json_answer(200, {}), openai_chat.answer(reply)


async def test_a_model_that_gives_every_word_back_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = WireReply((" ".join(WORDS),), input_tokens=290)

    found = await model_finding(tmp_path, monkeypatch, *reached(reply))

    assert (found.health, found.detail.partition(", and ")[2]) == ("good", "every part of a request reaches it")


async def test_a_count_that_is_far_from_ours_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = WireReply((" ".join(WORDS),), input_tokens=11)

    found = await model_finding(tmp_path, monkeypatch, *reached(reply))

    assert found.health == "doubtful"
    assert "it reports 11 tokens of input, and " in found.detail
    assert found.advice.startswith("set `context_window` in agent.yaml with care")


async def test_a_server_that_refuses_tools_is_asked_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, answer = reached(WireReply((" ".join(WORDS),), input_tokens=290))
    refusal = json_answer(400, {"error": {"message": "open does not support tools"}})

    found = await model_finding(tmp_path, monkeypatch, there, refusal, answer)

    assert found.health == "doubtful"
    assert "it takes no tools (" in found.detail
    assert "did not come back" not in found.detail


async def test_a_server_that_counts_the_same_without_tools_leaves_them_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = openai_chat.answer(WireReply(("Hello!",), input_tokens=290))

    found = await model_finding(tmp_path, monkeypatch, json_answer(200, {}), answer, answer)

    assert found.health == "doubtful"
    assert "its server leaves tools out: it counts 290 tokens with and without" in found.detail
    assert found.advice.startswith("give the model a chat template that has tools, or offer it none")


async def test_a_model_that_gives_no_word_back_is_not_blamed_on_its_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_tools = openai_chat.answer(WireReply(("Hello!",), input_tokens=250))
    answers = (*reached(WireReply(("Hello!",), input_tokens=290)), without_tools)
    found = await model_finding(tmp_path, monkeypatch, *answers)

    assert (found.health, found.detail.partition("; ")[2]) == (
        "doubtful",
        "it repeated none of the code words that it was sent",
    )


async def test_doctor_tries_the_place_for_large_texts(tmp_path: Path) -> None:
    async def about_the_store(url: str) -> Finding:
        settings = Settings(data=tmp_path, blobs_url=url, blobs_from_bytes=10)
        async for finding in examine(settings, ask=False, wait_s=0):
            return finding
        raise AssertionError

    good, bad = [await about_the_store(url) for url in (f"file://{tmp_path / 'objects'}", "ftp://host")]

    assert (good.health, good.detail.partition("; ")[2]) == (
        "good",
        f"texts from 10 bytes on in file://{tmp_path / 'objects'}",
    )
    assert (bad.health, bad.detail.partition(", ")[0]) == (
        "broken",
        "blobs_url: write s3://bucket/prefix?endpoint=https://host&region=name",
    )


async def test_the_database_of_the_analytics_is_tried(tmp_path: Path) -> None:
    async def told(url: str) -> Finding:
        examined = examine(Settings(data=tmp_path, analytics_url=url), ask=False, wait_s=0)
        (found,) = [finding async for finding in examined if finding.subject == "analytics"]
        return found

    good, away, wrong = [
        await told(url) for url in (fresh_database(), f"postgresql://127.0.0.1:{free_port()}/x", "a:b")
    ]

    assert (good.health, good.detail.rpartition("; ")[2]) == ("good", "nothing counted yet")
    assert (away.health, away.advice) == ("doubtful", "chat goes on without; see that the server runs")
    assert (wrong.health, wrong.advice) == ("broken", "correct this setting")
