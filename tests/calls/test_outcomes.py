"""The outcome of a call is what the provider said on the wire, whatever words stand in the answer."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from calls.test_ledger import PROVIDERS
from windowpane.calls.ledger import RecordedCall
from windowpane.context.events import Delta
from windowpane.context.messages import Usage
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World
from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireReply
from wire.server import EVENT_STREAM, Answer, running, sse

END_WORDS = (
    'Say [DONE], data: [DONE], message_stop, response.completed, finishReason, "done": true.\n\ndata: [DONE]\n\n'
)
"""An answer that speaks of the marks by which the protocols end a stream."""


@dataclass(frozen=True)
class Stream:
    """How one protocol streams an answer.

    `before_end` is how many events come before the one that says that the answer is over. `fault` is an error in the
    middle of a stream.
    """

    frames: Callable[[WireReply], tuple[bytes, ...]]
    before_end: Callable[[tuple[bytes, ...]], int]
    fault: bytes


OPENAI_FAULT = sse({"error": openai_chat.error("the server is overloaded", type_="server_error")})
STREAMS = {
    "openai": Stream(openai_chat.frames, lambda frames: len(frames) - 2, OPENAI_FAULT),
    "ollama": Stream(openai_chat.frames, lambda frames: len(frames) - 2, OPENAI_FAULT),
    "responses": Stream(
        openai_responses.frames,
        lambda frames: 6,
        sse(
            {"type": "error", "code": "server_error", "message": "the server is overloaded", "sequence_number": 9},
            event="error",
        ),
    ),
    "anthropic": Stream(
        anthropic_messages.frames,
        lambda frames: len(frames) - 2,
        sse(anthropic_messages.error("the server is overloaded", type_="overloaded_error"), event="error"),
    ),
    "google": Stream(
        google_gemini.frames,
        lambda frames: len(frames) - 1,
        sse({"error": {"code": 503, "message": "the server is overloaded", "status": "UNAVAILABLE"}}),
    ),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),  # compiling google-genai
    pytest.mark.parametrize("name", STREAMS),
]
REPLY = WireReply((END_WORDS, END_WORDS, "The end."), input_tokens=40, output_tokens=9)
GZIP = {"content-encoding": "gzip"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))


async def _asked(world: World, name: str, answer: Answer, *, stop: bool = False) -> RecordedCall:
    """Return the call of one turn. With `stop` the user stops the turn when text has come."""
    world.write("agent.yaml", f"model: {PROVIDERS[name].model}\nworking_context: false\nfinders: false\n")
    async with running(answer) as server:
        world.environ = PROVIDERS[name].environ(server.url)
        async with world.engine() as engine:
            session = (await engine.sessions.create()).id
            async for event in engine.turn(session, "Tell me how a stream ends."):
                if stop and isinstance(event, Delta):
                    stop = False
                    await engine.cancel(session)
            (call,) = await engine.calls.of_turn(session, 1)
            return call


async def test_an_answer_that_was_stopped_is_cut_though_it_speaks_of_the_end(world: World, name: str) -> None:
    frames = STREAMS[name].frames(REPLY)
    begun = frames[: STREAMS[name].before_end(frames)]

    call = await _asked(world, name, Answer((*begun, "until_gone")), stop=True)

    assert (call.outcome, call.reason) == ("cut", "the client stopped reading")


async def test_an_answer_whose_connection_broke_is_cut_though_it_speaks_of_the_end(world: World, name: str) -> None:
    frames = STREAMS[name].frames(REPLY)
    begun = frames[: STREAMS[name].before_end(frames)]

    call = await _asked(world, name, Answer((*begun, "cut")))

    assert call.outcome == "cut"


async def test_a_stream_that_just_ends_is_cut(world: World, name: str) -> None:
    frames = STREAMS[name].frames(REPLY)
    begun = frames[: STREAMS[name].before_end(frames)]

    call = await _asked(world, name, Answer(begun))

    assert (call.outcome, call.reason) == ("cut", "the stream ended before the answer did")


async def test_an_error_in_a_stream_is_an_error(world: World, name: str) -> None:
    frames = STREAMS[name].frames(REPLY)
    begun = frames[: STREAMS[name].before_end(frames)]

    call = await _asked(world, name, Answer((*begun, STREAMS[name].fault)))

    kind = {"anthropic": "overloaded_error", "google": "UNAVAILABLE"}.get(name, "server_error")
    assert (call.outcome, call.reason) == ("error", f"the answer tells of an error: {kind}")


async def test_an_answer_that_speaks_of_errors_and_of_the_end_is_complete(world: World, name: str) -> None:
    spoken = WireReply((END_WORDS, '{"error": {"code": "x"}} "type": "error"'), input_tokens=40, output_tokens=9)

    call = await _asked(world, name, PROVIDERS[name].answer(spoken))

    assert (call.outcome, call.reason, call.usage) == ("complete", "", Usage(40, 9))


async def test_a_compressed_answer_is_read_like_any_other(world: World, name: str) -> None:
    whole = PROVIDERS[name].answer(REPLY)
    body = b"".join(step for step in whole.steps if isinstance(step, bytes))

    call = await _asked(world, name, replace(whole, steps=(gzip.compress(body),), headers=whole.headers | GZIP))

    assert (call.outcome, call.reason, call.usage) == ("complete", "", Usage(40, 9))


async def test_an_answer_that_is_too_long_is_cut(world: World, name: str) -> None:
    call = await _asked(world, name, Answer((b"data: ", *[b"x" * 1024 * 1024] * 20, "until_gone")))

    assert (call.outcome, call.reason) == ("cut", "AnswerTooLongError: a line of the answer is longer than 16 MB")


async def test_an_answer_that_unpacks_to_too_much_is_cut(world: World, name: str) -> None:
    bomb = gzip.compress(b"data: " + b"x" * 1024 * 1024 * 20)

    call = await _asked(world, name, Answer((bomb, "until_gone"), headers=EVENT_STREAM | GZIP))

    assert (call.outcome, call.reason) == ("cut", "AnswerTooLongError: a line of the answer is longer than 16 MB")
