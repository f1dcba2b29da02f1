"""Words on a bus that loses, doubles and reorders messages are shown as they were written, or later, never wrong."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Literal, Self

from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.bus.base import LARGEST_MESSAGE, Bus, Hear
from windowpane.bus.words import Question, Speaker, SpokenWords, decoded, encoded
from windowpane.context.events import Delta, Live, ModelReplied, Recorded, TurnStarted
from windowpane.context.ids import SessionId
from windowpane.context.messages import Step
from windowpane.live import Hub

S = SessionId("s")
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Post(Bus):
    """Keeps messages until the test hands them out, in whatever order and number."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.hear: Hear = lambda message: None

    @property
    def away(self) -> str:
        return ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None: ...

    def publish(self, session_id: SessionId, message: bytes) -> None:
        self.messages.append(message)

    def subscribe(self, session_id: SessionId, hear: Hear) -> Callable[[], None]:
        self.hear = hear
        return lambda: None


def shown(hub: Hub) -> dict[str, str]:
    texts = {"text": "", "thinking": ""}
    told: list[Live] = list(hub._kept)  # pyright: ignore[reportPrivateUsage] all that it told, without a listener's pace
    for live in told:
        if isinstance(live, Delta):
            texts[live.kind] += live.text
    return texts


Pieces = list[tuple[Literal["text", "thinking"], str]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(("text", "thinking")), st.text(max_size=600))),
    st.randoms(use_true_random=False),
)
def test_what_is_shown_is_always_a_beginning_of_what_was_written_and_in_the_end_all(
    pieces: Pieces, chance: Random
) -> None:
    asyncio.run(_speak_badly(pieces, chance))


async def _speak_badly(pieces: Pieces, chance: Random) -> None:
    post, hub = Post(), Hub(1, {}, kept=10_000)
    speaker = Speaker(post, S)
    written = {"text": "", "thinking": ""}
    for kind, text in pieces:
        speaker.say(2, Delta(1, text, kind))
        written[kind] += text
        if chance.random() < 0.5:
            post.hear(encoded(hub.said))
        for message in chance.choices(post.messages, k=len(post.messages)) if post.messages else ():
            _tell(hub, message)
        if chance.random() < 0.3:
            hub.record(Recorded(2, AT, TurnStarted(turn=1, message="Hi")))
        assert all(written[kind].startswith(text) for kind, text in shown(hub).items())

    hub.record(Recorded(2, AT, TurnStarted(turn=1, message="Hi")))
    post.messages.clear()
    post.hear(encoded(hub.said))
    for message in post.messages:
        assert len(message) <= LARGEST_MESSAGE - 28
        _tell(hub, message)
    assert shown(hub) == written

    late = list(post.messages)
    hub.record(Recorded(3, AT, ModelReplied(turn=1, step=Step(text="stored"), tokens=1)))
    for message in late:
        _tell(hub, message)
    assert shown(hub) == written
    assert hub.said == Question(0, 0)
    speaker.close()


def _tell(hub: Hub, message: bytes) -> None:
    words = decoded(message)
    assert isinstance(words, SpokenWords)
    hub.speak(words.after, words.delta, words.offset)


async def test_nothing_is_said_until_a_watcher_asks() -> None:
    post = Post()
    speaker = Speaker(post, S)
    speaker.say(2, Delta(1, "Hello"))
    before = list(post.messages)
    post.hear(encoded(Question(2, 0)))
    speaker.close()

    assert before == []
    assert [decoded(message) for message in post.messages] == [SpokenWords(2, 2, Delta(1, "llo"))]


async def test_a_worker_that_has_no_words_yet_says_that_it_is_there() -> None:
    post = Post()
    speaker = Speaker(post, S)
    post.hear(encoded(Question(0, 0)))
    speaker.close()

    assert [decoded(message) for message in post.messages] == [SpokenWords(0, 0, Delta(0, ""))]


@given(st.one_of(st.binary(), st.text().map(lambda text: f"[{text}".encode()), st.just(b'["say",1,2,3,"shout","x"]')))
def test_what_is_no_message_of_ours_is_not_heard(body: bytes) -> None:
    assert decoded(body) is None
