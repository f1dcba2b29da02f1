"""What models say, through the real clients: text in order, tool calls, thinking, usage, and how they finish."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from models.talking import QUICK, READ, anthropic_models, google_models, listen, message, openai_models
from windowpane.context.messages import Step, ToolCall, Usage
from windowpane.context.request import CallSettings
from windowpane.models.base import ModelText
from windowpane.models.provider import PydanticModels
from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Answer, running, sse


@dataclass(frozen=True)
class Spoken:
    """A protocol: the model to open, how its answers look, and the words it has for things."""

    model: str
    models: Callable[[str], PydanticModels]
    answer: Callable[[WireReply], Answer]
    reported: str
    length: str


CHAT = Spoken("openai:gpt-4o", openai_models, openai_chat.answer, openai_chat.MODEL, "length")
ANTHROPIC = Spoken(
    "anthropic:claude-opus-4-6", anthropic_models, anthropic_messages.answer, "claude-opus-4-6", "max_tokens"
)
RESPONSES = Spoken(
    "openai-responses:gpt-5", openai_models, openai_responses.answer, openai_responses.MODEL, "max_output_tokens"
)
GOOGLE = Spoken("google:gemini-2.5-flash", google_models, google_gemini.answer, google_gemini.MODEL, "MAX_TOKENS")

every_protocol = pytest.mark.parametrize(
    "spoken",
    [
        pytest.param(CHAT, id="chat"),
        pytest.param(ANTHROPIC, id="anthropic"),
        pytest.param(RESPONSES, id="responses"),
        pytest.param(
            GOOGLE,
            id="google",
            marks=pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),
        ),
    ],
)
streaming_arguments = pytest.mark.parametrize(
    "spoken",
    [pytest.param(CHAT, id="chat"), pytest.param(ANTHROPIC, id="anthropic"), pytest.param(RESPONSES, id="responses")],
)
CALLS = (
    WireCall("call_1", "files_read", ('{"pa', 'th": ', '"a.txt"}')),
    WireCall("call_2", "files_read", ('{"path": "b.txt"}',)),
)


async def hear(spoken: Spoken, reply: WireReply) -> tuple[list[ModelText], Step]:
    """Return what one answer becomes, without the time it took."""
    async with running(spoken.answer(reply)) as wire, spoken.models(wire.url) as models:
        texts, step = await listen(models.open(spoken.model), tools=[READ])
    assert step.latency_ms >= 0
    return texts, replace(step, latency_ms=0)


async def test_a_character_that_comes_in_two_halves_is_whole_and_a_half_that_stays_alone_loses_nothing_else() -> None:
    reply = WireReply(
        ("Fine HIGH", "LOW!", "LOW", " HIGH"), thinking=("Hm HIGH",), calls=(WireCall("c1", "x", ('{"a": "HIGH"}',)),)
    )
    frames = (
        frame.replace(b"HIGH", rb"\ud83d").replace(b"LOW", rb"\ude00") for frame in anthropic_messages.frames(reply)
    )
    asked = message("user", "Hi")
    async with (
        running(Answer(tuple(frames)), anthropic_messages.answer(WireReply(("Done.",)))) as wire,
        anthropic_models(wire.url) as models,
    ):
        model = models.open(ANTHROPIC.model)
        texts, step = await listen(model, (asked,), [READ])
        results = (message("assistant", step.text, *step.tool_calls), message("tool", "ok", call_id="c1"))
        _, then = await listen(model, (asked, *results), [READ])

    assert step.text == "".join(text.text for text in texts if text.kind == "text") == "Fine 😀!\ufffd \ufffd"
    assert (step.thinking, step.tool_calls) == ("Hm \ufffd", (ToolCall("c1", "x", '{"a": "\ufffd"}'),))
    assert then.text == "Done."


@every_protocol
@pytest.mark.spec("S0.37")
async def test_text_comes_piece_by_piece_in_order_and_the_end_has_all_of_it(spoken: Spoken) -> None:
    reply = WireReply((" The", " answer\n", "is", " 4.2 "), input_tokens=100, output_tokens=20)

    texts, step = await hear(spoken, reply)

    assert texts == [ModelText(" The"), ModelText(" answer\n"), ModelText("is"), ModelText(" 4.2 ")]
    assert step == Step(
        text=" The answer\nis 4.2 ",
        usage=Usage(input_tokens=100, output_tokens=20),
        model=spoken.reported,
        finish_reason="stop",
    )


@streaming_arguments
@pytest.mark.spec("S0.37")
async def test_parallel_tool_calls_keep_their_order_their_ids_and_their_arguments(spoken: Spoken) -> None:
    texts, step = await hear(spoken, WireReply(("I will", " look."), calls=CALLS))

    assert "".join(text.text for text in texts) == "I will look."
    assert (step.text, step.finish_reason) == ("I will look.", "tool_call")
    assert step.tool_calls == (
        ToolCall("call_1", "files_read", '{"path": "a.txt"}'),
        ToolCall("call_2", "files_read", '{"path": "b.txt"}'),
    )


@streaming_arguments
@pytest.mark.parametrize("written", ['{"path": "a.txt', "path=a.txt", '["a.txt"]', '{"path": "a.txt"}}', '"a\\ud800"'])
async def test_malformed_arguments_are_kept_as_the_model_wrote_them(spoken: Spoken, written: str) -> None:
    _, step = await hear(spoken, WireReply(calls=(WireCall("call_1", "files_read", (written[:3], written[3:])),)))

    assert step.tool_calls == (ToolCall("call_1", "files_read", written),)


@streaming_arguments
async def test_a_call_without_arguments_has_an_empty_object(spoken: Spoken) -> None:
    _, step = await hear(spoken, WireReply(calls=(WireCall("call_1", "files_read", ("",)),)))

    assert step.tool_calls == (ToolCall("call_1", "files_read", "{}"),)


@every_protocol
async def test_a_tool_that_was_never_offered_is_reported_as_the_model_named_it(spoken: Spoken) -> None:
    _, step = await hear(spoken, WireReply(calls=(WireCall("call_1", "made_up", ("{}",)),)))

    assert [(call.offered_name, call.arguments, call.ref) for call in step.tool_calls] == [("made_up", "{}", None)]


@pytest.mark.parametrize(
    ("spoken", "usage"),
    [
        pytest.param(CHAT, Usage(100, 20, cache_read_tokens=64), id="chat"),
        pytest.param(RESPONSES, Usage(100, 20, cache_read_tokens=64), id="responses"),
        # Anthropic reports what it read from the cache apart from the rest; our count has everything.
        pytest.param(ANTHROPIC, Usage(164, 20, cache_read_tokens=64), id="anthropic"),
    ],
)
async def test_usage_tells_what_came_from_the_cache(spoken: Spoken, usage: Usage) -> None:
    _, step = await hear(spoken, WireReply(("ok",), input_tokens=100, output_tokens=20, cached_tokens=64))

    assert step.usage == usage


@pytest.mark.parametrize("spoken", [pytest.param(CHAT, id="chat"), pytest.param(ANTHROPIC, id="anthropic")])
async def test_thinking_is_kept_apart_from_what_is_said(spoken: Spoken) -> None:
    texts, step = await hear(spoken, WireReply(("It is", " 4."), thinking=("Two and", " two")))

    assert texts == [
        ModelText("Two and", "thinking"),
        ModelText(" two", "thinking"),
        ModelText("It is"),
        ModelText(" 4."),
    ]
    assert (step.thinking, step.text) == ("Two and two", "It is 4.")


@every_protocol
async def test_an_answer_cut_at_the_token_limit_says_so(spoken: Spoken) -> None:
    _, step = await hear(spoken, WireReply(("Once upon a",), finish=spoken.length))

    assert (step.text, step.finish_reason) == ("Once upon a", "length")


async def test_an_answer_stopped_by_a_content_filter_says_so() -> None:
    _, step = await hear(CHAT, WireReply(("I",), finish="content_filter"))

    assert (step.text, step.finish_reason) == ("I", "content_filter")


async def test_a_refusal_is_what_the_model_said() -> None:
    frames = (
        openai_chat.delta({"role": "assistant", "content": None, "refusal": ""}),
        openai_chat.delta({"refusal": "I cannot"}),
        openai_chat.delta({"refusal": " help with that."}),
        openai_chat.delta({}, "stop"),
        openai_chat.DONE,
    )
    async with running(Answer(frames)) as wire, openai_models(wire.url) as models:
        texts, step = await listen(models.open("openai:gpt-4o"))

    assert "".join(text.text for text in texts) == "I cannot help with that."
    assert (step.text, step.finish_reason) == ("I cannot help with that.", "content_filter")


@pytest.mark.parametrize("spoken", [pytest.param(CHAT, id="chat"), pytest.param(ANTHROPIC, id="anthropic")])
async def test_an_empty_answer_is_an_empty_step(spoken: Spoken) -> None:
    texts, step = await hear(spoken, WireReply(input_tokens=3, output_tokens=0))

    assert texts == []
    assert step == Step(usage=Usage(input_tokens=3), model=spoken.reported, finish_reason="stop")


async def test_texts_with_thinking_between_them_are_paragraphs_and_neighbours_are_one_text() -> None:
    def block(index: int, kind: str, text: str) -> tuple[bytes, ...]:
        start = {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}
        delta = {"type": f"{kind}_delta", kind: text}
        return (
            anthropic_messages.event("content_block_start", {"index": index, "content_block": start}),
            anthropic_messages.event("content_block_delta", {"index": index, "delta": delta}),
            anthropic_messages.event("content_block_stop", {"index": index}),
        )

    start, ping, *end = anthropic_messages.frames(WireReply())
    blocks = (
        *block(0, "text", "One"),
        *block(1, "text", " two."),
        *block(2, "thinking", "hm"),
        *block(3, "text", "Three."),
    )
    async with running(Answer((start, ping, *blocks, *end))) as wire, anthropic_models(wire.url) as models:
        texts, step = await listen(models.open("anthropic:claude-opus-4-6"))

    assert step.text == "One two.\n\nThree."
    assert "".join(text.text for text in texts if text.kind == "text") == step.text


async def test_unicode_split_across_chunks_arrives_whole() -> None:
    whole = b"".join((*openai_chat.frames(WireReply(("日本", "語 🧵", " naïve"))), openai_chat.DONE))
    single_bytes = tuple(whole[index : index + 1] for index in range(len(whole)))
    async with running(Answer(single_bytes)) as wire, openai_models(wire.url) as models:
        _, step = await listen(models.open("openai:gpt-4o"))

    assert step.text == "日本語 🧵 naïve"


async def test_a_huge_answer_arrives_whole() -> None:
    pieces = tuple(f"line {number}\n" for number in range(10_000))
    texts, step = await hear(CHAT, WireReply(pieces))

    assert len(texts) == 10_000
    assert step.text == "".join(pieces)


async def test_comments_and_empty_chunks_of_a_compatible_server_do_no_harm() -> None:
    first, *rest = openai_chat.frames(WireReply(("ok",)))
    frames = (b": waking up\n\n", first, sse({"id": "x", "object": "chat.completion.chunk", "choices": []}), *rest)
    async with running(Answer((*frames, openai_chat.DONE))) as wire, openai_models(wire.url) as models:
        _, step = await listen(models.open("openai:gpt-4o"))

    assert step.text == "ok"


async def test_signed_thinking_goes_back_with_the_tool_result_of_its_turn() -> None:
    asked = message("user", "Read a.txt")
    first = WireReply(("Let me see.",), thinking=("I should read it.",), calls=(WireCall("call_1", "files_read"),))
    answers = (anthropic_messages.answer(first), anthropic_messages.answer(WireReply(("It is empty.",))))
    async with running(*answers) as wire, anthropic_models(wire.url) as models:
        model = models.open("anthropic:claude-haiku-4-5")
        thinking = CallSettings(model=model.name, mode="thinking")
        _, step = await listen(model, (asked,), [READ], thinking)
        answered = (
            asked,
            message("assistant", step.text, *step.tool_calls),
            message("tool", "nothing", call_id="call_1"),
        )

        await listen(model, answered, [READ], thinking)

    assert "thinking" in wire.asked[1].body
    assert wire.asked[1].body["messages"][1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I should read it.", "signature": "c2lnbmVk"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "call_1", "name": "files_read", "input": {}},
        ],
    }


async def test_a_turn_whose_earlier_thinking_is_not_known_goes_on_without_thinking() -> None:
    answered = (
        message("user", "Read a.txt"),
        message("assistant", "Let me see.", ToolCall("call_1", "files_read", "{}")),
        message("tool", "nothing", call_id="call_1"),
    )
    async with running(anthropic_messages.answer(WireReply(("ok",)))) as wire, anthropic_models(wire.url) as models:
        model = models.open("anthropic:claude-haiku-4-5")

        await listen(model, answered, [READ], CallSettings(model=model.name, mode="thinking"))

    assert "thinking" not in wire.asked[0].body


async def test_ollama_is_spoken_to_at_its_own_address_with_or_without_the_path() -> None:
    async with running(*[openai_chat.answer(WireReply(("ok",)))] * 2) as wire:
        for url in (wire.url, f"{wire.url}/v1"):
            async with PydanticModels(patience=QUICK, environ={"OLLAMA_BASE_URL": url}) as models:
                _, step = await listen(models.open("ollama:qwen3"))
                assert step.text == "ok"

    assert [(asked.path, asked.body["model"]) for asked in wire.asked] == [("/v1/chat/completions", "qwen3")] * 2


async def test_a_compatible_server_without_a_key_is_spoken_to_in_chat_completions() -> None:
    async with (
        running(openai_chat.answer(WireReply(("ok",)))) as wire,
        PydanticModels(patience=QUICK, environ={"OPENAI_BASE_URL": f"{wire.url}/custom/v1"}) as models,
    ):
        _, step = await listen(models.open("openai:my-local-model"))

    assert step.text == "ok"
    assert [(asked.path, asked.body["model"]) for asked in wire.asked] == [
        ("/custom/v1/chat/completions", "my-local-model")
    ]
