"""How model calls fail, through the real clients: every failure is one error that says what to do next."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import anyio
import pytest

from models.talking import KEY, QUICK, anthropic_models, google_models, listen, openai_models, speaking
from patience import PATIENCE_S
from windowpane.errors import (
    ModelAuthError,
    ModelError,
    ModelRateLimitedError,
    ModelRejectedError,
    ModelStreamBrokenError,
    ModelTimeoutError,
    ModelUnavailableError,
    RequestTooLongError,
)
from windowpane.models.base import ModelText
from windowpane.models.provider import PydanticModels
from windowpane.models.stream import Patience
from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireReply
from wire.server import Answer, Step, json_answer, running, sse


@dataclass(frozen=True)
class Spoken:
    """A protocol: the model to open, the events of its answers, and its errors by status and kind."""

    model: str
    key_variable: str
    models: Callable[..., PydanticModels]
    frames: Callable[[WireReply], tuple[bytes, ...]]
    problem: Callable[[int, str, dict[str, str]], Answer]
    error_event: bytes


def _chat_problem(status: int, message: str, headers: dict[str, str]) -> Answer:
    return openai_chat.problem(status, message, headers=headers)


def _anthropic_problem(status: int, message: str, headers: dict[str, str]) -> Answer:
    kinds = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
    kinds |= {413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
    return anthropic_messages.problem(status, message, type_=kinds.get(status, "api_error"), headers=headers)


CHAT = Spoken(
    "openai:gpt-4o",
    "OPENAI_API_KEY",
    openai_models,
    openai_chat.frames,
    _chat_problem,
    sse({"error": openai_chat.error("The server had an error", type_="server_error")}),
)
ANTHROPIC = Spoken(
    "anthropic:claude-opus-4-6",
    "ANTHROPIC_API_KEY",
    anthropic_models,
    anthropic_messages.frames,
    _anthropic_problem,
    sse(anthropic_messages.error("Overloaded", type_="overloaded_error"), event="error"),
)
both = pytest.mark.parametrize("spoken", [pytest.param(CHAT, id="chat"), pytest.param(ANTHROPIC, id="anthropic")])
OK = WireReply(("Hel", "lo"))


async def fail(spoken: Spoken, *answers: Answer, patience: Patience = QUICK) -> tuple[ModelError, int]:
    """Return the error of a call and how often the server was asked."""
    async with running(*answers) as wire, spoken.models(wire.url, patience) as models:
        with pytest.raises(ModelError) as caught:
            await listen(models.open(spoken.model))
    assert KEY not in str(caught.value)
    return caught.value, len(wire.asked)


def begun(spoken: Spoken, *then: Step) -> Answer:
    """Return an answer that begins with "Hello" and goes on in another way."""
    frames = spoken.frames(OK)
    spoken_so_far = next(index for index, frame in enumerate(frames) if b'"lo"' in frame) + 1
    return Answer((*frames[:spoken_so_far], *then))


@both
@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_told_with_the_variable_to_check_and_without_the_key(
    spoken: Spoken, status: int
) -> None:
    error, asked = await fail(spoken, spoken.problem(status, f"Incorrect API key provided: {KEY}", {}))

    assert type(error) is ModelAuthError
    assert str(error) == (
        f"{spoken.model} refused the key: Incorrect API key provided: [key]; check {spoken.key_variable}"
    )
    assert asked == 1


@both
@pytest.mark.parametrize("status", [400, 404, 413, 422])
async def test_a_refused_request_carries_the_words_of_the_provider(spoken: Spoken, status: int) -> None:
    error, asked = await fail(spoken, spoken.problem(status, "tools.0: name is  too\nlong", {}))

    assert type(error) is ModelRejectedError
    assert str(error) == f"{spoken.model} refused the request: tools.0: name is too long"
    assert asked == 1


@both
async def test_a_rate_limit_is_waited_out_as_long_as_the_provider_asks(spoken: Spoken) -> None:
    slow_down = spoken.problem(429, "Slow down", {"retry-after-ms": "20"})
    async with running(slow_down, slow_down, Answer(spoken.frames(OK))) as wire, spoken.models(wire.url) as models:
        _, step = await listen(models.open(spoken.model))

    assert step.text == "Hello"
    assert len(wire.asked) == 3
    assert wire.asked[0].body == wire.asked[2].body


@both
@pytest.mark.parametrize(("asked_s", "told"), [("7", "7 s"), ("121", "3 min"), ("7199", "2 h"), ("7500", "2 h 5 min")])
async def test_a_rate_limit_that_stays_is_reported_with_the_time_to_come_back(
    spoken: Spoken, asked_s: str, told: str
) -> None:
    slow_down = spoken.problem(429, "Slow down", {"retry-after-ms": "20"})

    error, asked = await fail(spoken, slow_down, slow_down, spoken.problem(429, "Slow down", {"retry-after": asked_s}))

    assert isinstance(error, ModelRateLimitedError)
    assert error.retry_after_s == float(asked_s)
    assert str(error) == f"{spoken.model}: rate limit (Slow down); try again in {told}"
    assert asked == 3


@both
async def test_a_pause_longer_than_the_limit_is_not_waited_for(spoken: Spoken) -> None:
    error, asked = await fail(spoken, spoken.problem(429, "Slow down", {"retry-after": "3600"}))

    assert isinstance(error, ModelRateLimitedError)
    assert error.retry_after_s == 3600
    assert asked == 1


async def test_an_exhausted_account_is_not_tried_again() -> None:
    error, asked = await fail(
        CHAT, openai_chat.problem(429, "You exceeded your quota", type_="insufficient_quota", code="insufficient_quota")
    )

    assert type(error) is ModelRejectedError
    assert str(error) == "openai:gpt-4o: quota used up (You exceeded your quota)"
    assert asked == 1


async def test_a_request_that_is_too_long_says_what_to_do() -> None:
    message = "This model's maximum context length is 128000 tokens"
    error, _ = await fail(CHAT, openai_chat.problem(400, f"{message}.", code="context_length_exceeded"))

    assert type(error) is RequestTooLongError
    assert (error.reported_tokens, error.window_tokens) == (None, None)
    assert str(error) == (
        f"the request is too long for openai:gpt-4o: {message}; set context_window in agent.yaml to what the model "
        "takes, remove items, or choose a model with a larger window"
    )


@both
async def test_trouble_at_the_provider_is_tried_again(spoken: Spoken) -> None:
    trouble = spoken.problem(500, "Internal error", {})
    async with running(trouble, trouble, Answer(spoken.frames(OK))) as wire, spoken.models(wire.url) as models:
        _, step = await listen(models.open(spoken.model))

    assert step.text == "Hello"
    assert len(wire.asked) == 3


@both
@pytest.mark.parametrize("status", [500, 503, 529])
async def test_trouble_that_stays_makes_the_model_unavailable(spoken: Spoken, status: int) -> None:
    error, asked = await fail(spoken, *[spoken.problem(status, "Internal error", {})] * 3)

    assert type(error) is ModelUnavailableError
    assert str(error) == f"{spoken.model}: provider error (Internal error); try again in a moment"
    assert asked == 3


@both
async def test_a_page_from_a_proxy_is_reported_by_its_status(spoken: Spoken) -> None:
    page = Answer((b"<html><h1>502 Bad Gateway</h1></html>",), status=502, headers={"content-type": "text/html"})

    error, _ = await fail(spoken, page, page, page)

    assert type(error) is ModelUnavailableError
    assert str(error) == f"{spoken.model}: provider error (status 502); try again in a moment"


@both
async def test_a_provider_may_forbid_another_attempt(spoken: Spoken) -> None:
    _, asked = await fail(spoken, spoken.problem(500, "Internal error", {"x-should-retry": "false"}))

    assert asked == 1


@both
async def test_a_server_that_is_not_there_is_named_with_its_address(spoken: Spoken) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        async with spoken.models(url) as models:
            with pytest.raises(ModelUnavailableError, match=f"{spoken.model} cannot be reached at {url}"):
                await listen(models.open(spoken.model))


async def test_a_host_without_an_address_cannot_be_reached() -> None:
    async with openai_models("http://no-such-host.invalid") as models:
        with pytest.raises(ModelUnavailableError, match="openai:gpt-4o cannot be reached"):
            await listen(models.open("openai:gpt-4o"))


@both
async def test_a_connection_that_breaks_before_the_answer_is_tried_again(spoken: Spoken) -> None:
    async with running(Answer(("cut",)), Answer(spoken.frames(OK))) as wire, spoken.models(wire.url) as models:
        _, step = await listen(models.open(spoken.model))

    assert step.text == "Hello"
    assert len(wire.asked) == 2


@both
async def test_a_connection_that_breaks_in_the_answer_leaves_what_was_said_and_is_not_tried_again(
    spoken: Spoken,
) -> None:
    error, asked = await fail(spoken, begun(spoken, "cut"))

    assert type(error) is ModelStreamBrokenError
    assert str(error).startswith(f"{spoken.model}: the answer was cut off: ")
    assert error.partial == "Hello"
    assert asked == 1


MB = 1024 * 1024


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        pytest.param((b"data: ", *[b"x" * MB] * 20), "a line of the answer is longer than 16 MB", id="line"),
        pytest.param((b": " + b"x" * (MB - 4) + b"\n\n",) * 70, "the answer is longer than 64 MB", id="answer"),
    ],
)
@both
async def test_an_answer_without_an_end_is_broken_off_and_not_asked_for_again(
    spoken: Spoken, sent: tuple[bytes, ...], said: str
) -> None:
    error, asked = await fail(spoken, begun(spoken, *sent, "until_gone"))
    unspoken, asked_once = await fail(spoken, Answer((*sent, "until_gone")))

    assert (type(error), type(unspoken)) == (ModelStreamBrokenError, ModelStreamBrokenError)
    assert str(error) == f"{spoken.model}: the answer was cut off: {said}"
    assert str(unspoken) == f"{spoken.model} gave an answer that cannot be read: {said}"
    assert (error.partial, unspoken.partial) == ("Hello", "")
    assert (asked, asked_once) == (1, 1)


@both
async def test_a_stream_that_ends_early_is_broken_even_when_the_connection_ends_well(spoken: Spoken) -> None:
    error, asked = await fail(spoken, begun(spoken))

    assert type(error) is ModelStreamBrokenError
    assert str(error) == (f"{spoken.model}: the answer was cut off: the connection ended before the model had finished")
    assert (error.partial, asked) == ("Hello", 1)


async def test_a_responses_stream_that_ends_early_is_broken_too() -> None:
    frames = openai_responses.frames(OK)[:-1]
    async with running(Answer(frames)) as wire, openai_models(wire.url) as models:
        with pytest.raises(ModelStreamBrokenError) as caught:
            await listen(models.open("openai-responses:gpt-5"))

    assert caught.value.partial == "Hello"


@both
async def test_an_error_inside_the_stream_breaks_the_answer(spoken: Spoken) -> None:
    error, asked = await fail(spoken, begun(spoken, spoken.error_event))

    assert type(error) is ModelStreamBrokenError
    assert str(error) in (
        f"{spoken.model}: the answer was cut off: The server had an error",
        f"{spoken.model}: the answer was cut off: Overloaded",
    )
    assert (error.partial, asked) == ("Hello", 1)


@both
async def test_an_error_that_comes_first_in_the_stream_is_tried_again(spoken: Spoken) -> None:
    async with (
        running(Answer((spoken.error_event,)), Answer(spoken.frames(OK))) as wire,
        spoken.models(wire.url) as models,
    ):
        _, step = await listen(models.open(spoken.model))

    assert step.text == "Hello"
    assert len(wire.asked) == 2


@both
@pytest.mark.parametrize("broken", [b'data: {"type": "content_block_delta", "id\n\n', b"data: <html>\n\n"])
async def test_an_event_that_is_not_json_breaks_the_answer(spoken: Spoken, broken: bytes) -> None:
    error, asked = await fail(spoken, begun(spoken, b"event: content_block_delta\n" + broken))

    assert type(error) is ModelStreamBrokenError
    assert (error.partial, asked) == ("Hello", 1)


@both
async def test_a_body_that_is_not_a_stream_cannot_be_read(spoken: Spoken) -> None:
    error, _ = await fail(spoken, json_answer(200, {"hello": "world"}))

    assert type(error) is ModelStreamBrokenError
    assert error.partial == ""


@both
async def test_a_model_that_never_begins_runs_out_of_time(spoken: Spoken) -> None:
    error, _ = await fail(spoken, Answer(("until_gone",)), patience=replace(QUICK, first_s=1))

    assert type(error) is ModelTimeoutError
    assert str(error) == f"{spoken.model} did not begin to answer within 1 s; try again, or choose a faster model"
    assert error.partial == ""


@both
async def test_a_model_that_goes_silent_in_the_answer_runs_out_of_time_and_is_hung_up_on(spoken: Spoken) -> None:
    patience = replace(QUICK, between_s=2)
    async with running(begun(spoken, "until_gone")) as wire, spoken.models(wire.url, patience) as models:
        with pytest.raises(ModelTimeoutError) as caught:
            await listen(models.open(spoken.model))

        with anyio.fail_after(PATIENCE_S):
            await wire.asked[0].gone.wait()

    assert str(caught.value) == (
        f"{spoken.model} was silent for 2 s in its answer; try again, or choose a faster model"
    )
    assert (caught.value.partial, len(wire.asked)) == ("Hello", 1)


@both
async def test_cancelling_ends_the_call_at_once_and_hangs_up(spoken: Spoken) -> None:
    async with running(begun(spoken, "until_gone")) as wire, spoken.models(wire.url) as models:
        model = models.open(spoken.model)
        heard: list[str] = []
        with anyio.CancelScope() as scope:
            async with aclosing(speaking(model)) as events:
                async for event in events:
                    assert isinstance(event, ModelText)
                    heard.append(event.text)
                    if "".join(heard) == "Hello":
                        asyncio.get_running_loop().call_soon(scope.cancel)

        assert scope.cancelled_caught
        with anyio.fail_after(PATIENCE_S):
            await wire.asked[0].gone.wait()


@both
async def test_cancelling_before_the_first_byte_hangs_up(spoken: Spoken) -> None:
    async with running(Answer(("until_gone",))) as wire, spoken.models(wire.url) as models:
        async with anyio.create_task_group() as group:
            group.start_soon(listen, models.open(spoken.model))
            await wire.wait_for_requests(1)
            group.cancel_scope.cancel()

        with anyio.fail_after(PATIENCE_S):
            await wire.asked[0].gone.wait()


@both
async def test_a_listener_that_leaves_early_hangs_up(spoken: Spoken) -> None:
    async with running(begun(spoken, "until_gone")) as wire, spoken.models(wire.url) as models:
        model = models.open(spoken.model)
        async with aclosing(speaking(model)) as events:
            async for _ in events:
                break

        with anyio.fail_after(PATIENCE_S):
            await wire.asked[0].gone.wait()


@both
async def test_the_model_can_be_called_again_after_any_failure(spoken: Spoken) -> None:
    answers = (
        spoken.problem(401, "no", {}),
        begun(spoken, "cut"),
        begun(spoken, spoken.error_event),
        Answer(spoken.frames(OK)),
    )
    async with running(*answers) as wire, spoken.models(wire.url) as models:
        model = models.open(spoken.model)
        for expected in (ModelAuthError, ModelStreamBrokenError, ModelStreamBrokenError):
            with pytest.raises(expected):
                await listen(model)
        _, step = await listen(model)

    assert step.text == "Hello"


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
async def test_google_fails_in_the_same_words() -> None:
    async with (
        running(google_gemini.problem(400, "API key not valid.", code="INVALID_ARGUMENT")) as wire,
        google_models(wire.url) as models,
    ):
        with pytest.raises(ModelRejectedError) as caught:
            await listen(models.open("google:gemini-2.5-flash"))

    assert str(caught.value) == "google:gemini-2.5-flash refused the request: API key not valid"


async def test_a_key_that_a_gateway_quotes_back_is_never_shown() -> None:
    others = "sk-proj-AbCdEf0123456789 and Bearer abc.def-ghi"
    error, _ = await fail(CHAT, openai_chat.problem(400, f"bad header {KEY}, {others}"))

    assert str(error) == "openai:gpt-4o refused the request: bad header [key], [key] and Bearer [key]"


async def test_a_very_long_message_is_shortened() -> None:
    error, _ = await fail(CHAT, openai_chat.problem(400, "x" * 5000))

    assert str(error) == f"openai:gpt-4o refused the request: {'x' * 600}…"
