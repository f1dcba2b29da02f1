"""The scripted model: it says what it was told, and keeps what it was asked."""

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.talking import HI, READ, listen, message, settings, speaking
from patience import PATIENCE_S
from windowpane.context.messages import Step, ToolCall, Usage
from windowpane.errors import ModelRateLimitedError, ModelRejectedError, ModelStreamBrokenError
from windowpane.models.base import ModelText
from windowpane.models.scripted import Call, Received, Reply, ScriptedModel, words


async def test_replies_are_played_in_order_word_by_word() -> None:
    model = ScriptedModel("demo", [Reply(" One\ntwo "), Reply("Three.", usage=Usage(5, 1), finish_reason="length")])

    first, step = await listen(model)
    _, second = await listen(model)

    assert first == [ModelText(" One\n"), ModelText("two ")]
    assert step == Step(text=" One\ntwo ", model="scripted:demo", finish_reason="stop", latency_ms=step.latency_ms)
    assert second == Step(
        text="Three.",
        model="scripted:demo",
        usage=Usage(5, 1),
        finish_reason="length",
        latency_ms=second.latency_ms,
    )


async def test_tool_calls_and_thinking_are_played() -> None:
    calls = (Call("files_read", '{"path": ', "call_1"), Call("other", "{}", "call_2"))
    model = ScriptedModel("demo", [Reply("Look.", thinking="Hm hm", calls=calls)])

    texts, step = await listen(model)

    assert texts == [ModelText("Hm ", "thinking"), ModelText("hm", "thinking"), ModelText("Look.")]
    assert step.tool_calls == (ToolCall("call_1", "files_read", '{"path": '), ToolCall("call_2", "other", "{}"))
    assert (step.thinking, step.finish_reason) == ("Hm hm", "tool_call")


async def test_an_empty_reply_is_an_empty_step() -> None:
    texts, step = await listen(ScriptedModel("demo", [Reply()]))

    assert (texts, step.text, step.tool_calls) == ([], "", ())


async def test_every_call_is_kept_as_it_was_made() -> None:
    model = ScriptedModel("demo", [Reply("ok")])
    messages = (message("system", "Be brief."), *HI)

    await listen(model, messages, [READ])

    assert model.calls == [Received(messages, (READ,), settings(model))]


async def test_an_error_comes_after_what_was_said_and_carries_it() -> None:
    model = ScriptedModel("demo", [Reply("Half an", error=ModelStreamBrokenError("gone"))])

    with pytest.raises(ModelStreamBrokenError) as caught:
        await listen(model)

    assert (str(caught.value), caught.value.partial) == ("gone", "Half an")


async def test_an_error_alone_comes_at_once_and_only_once() -> None:
    model = ScriptedModel("demo", [Reply(error=ModelRateLimitedError("later", retry_after_s=3)), Reply("ok")])

    with pytest.raises(ModelRateLimitedError):
        await listen(model)

    assert len(model.calls) == 1


async def test_a_call_beyond_the_script_is_refused_until_a_reply_is_added() -> None:
    model = ScriptedModel("demo")

    with pytest.raises(ModelRejectedError, match="scripted:demo has 0 replies and was called 1 times"):
        await listen(model)
    model.add(Reply("never"), Reply("now"))

    assert (await listen(model))[1].text == "now"


async def test_gates_hold_the_model_before_its_first_word_and_before_its_end() -> None:
    start, end = anyio.Event(), anyio.Event()
    model = ScriptedModel("demo", [Reply("Hello", after=start, before_end=end)])
    heard: list[str] = []
    spoke = anyio.Event()

    async def hear() -> None:
        async for event in speaking(model):
            heard.append(type(event).__name__)
            spoke.set()

    async with anyio.create_task_group() as group:
        group.start_soon(hear)
        with anyio.fail_after(PATIENCE_S):
            await model.wait_for_calls(1)
            assert heard == []
            start.set()
            await spoke.wait()
            assert heard == ["ModelText"]
            end.set()

    assert heard == ["ModelText", "ModelStep"]


async def test_calls_at_the_same_time_get_replies_of_their_own() -> None:
    model = ScriptedModel("demo", [Reply("one one one"), Reply("two two two")])
    texts: list[str] = []

    async def call() -> None:
        texts.append((await listen(model))[1].text)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        group.start_soon(call)

    assert sorted(texts) == ["one one one", "two two two"]


@given(st.text())
def test_words_together_are_the_text(text: str) -> None:
    assert "".join(words(text)) == text


async def test_other_work_of_the_process_goes_on_while_a_long_answer_is_said() -> None:
    model = ScriptedModel("demo", [Reply("word " * 2000)])
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await listen(model)
        tasks.cancel_scope.cancel()

    assert rounds >= 100
