from dataclasses import replace
from datetime import UTC, datetime

import pytest

from windowpane.context.fetched import Fetched
from windowpane.context.ids import RequestId
from windowpane.context.items import Reference, reference_ref
from windowpane.context.messages import Source, Step
from windowpane.context.request import (
    Budget,
    CallSettings,
    ContextItem,
    Evidence,
    ItemStatus,
    Part,
    Query,
    Request,
    RequestContext,
)
from windowpane.context.session import HeldFetch
from windowpane.insight.use import used_among
from windowpane.turn.sources import TurnEnd, sources_of

NOW = datetime(2026, 5, 1, tzinfo=UTC)
REFERENCES = {
    "crop": Reference("crop", "…", title="Photo Cropping Guide", related=("resize", "formats")),
    "resize": Reference("resize", "…", title="Photo Resizing Guide", related=("crop", "Colour Basics")),
    "formats": Reference("formats", "…"),
}


def item(name: str, score: float | None = None, status: ItemStatus = "used") -> ContextItem:
    return ContextItem(
        type="reference",
        name=name,
        include_mode="manual" if score is None else "agent",
        status=status,
        reason="",
        evidence=None if score is None else Evidence(score),
    )


def request(*items: ContextItem, parts: tuple[Part, ...] = ()) -> Request:
    context = RequestContext(
        id=RequestId("req_test"),
        turn=1,
        timestamp=NOW,
        agent="pane",
        settings=CallSettings(model="echo"),
        query=Query(text="?"),
        items=items,
        parts=parts,
        budget=Budget(window_tokens=1, reply_tokens=0, used_tokens=0),
    )
    return Request(messages=(), tools=(), context=context)


@pytest.mark.spec("S3.37", "S3.42")
def test_sources_are_the_references_that_were_sent_with_their_scores() -> None:
    sources, related = sources_of(request(item("crop", 0.92)), REFERENCES)

    assert sources == (Source(title="Photo Cropping Guide", score=0.92, ref=reference_ref("crop")),)
    assert related == ("Photo Resizing Guide", "formats")


def test_a_reference_of_the_session_scores_one_and_comes_first() -> None:
    sources, _ = sources_of(request(item("crop", 0.92), item("formats")), REFERENCES)

    assert sources == (
        Source(title="formats", score=1.0, ref=reference_ref("formats")),
        Source(title="Photo Cropping Guide", score=0.92, ref=reference_ref("crop")),
    )


def test_what_the_model_was_not_given_is_no_source() -> None:
    left_out = (item("crop", 0.9, "over_budget"), item("resize", None, "missing"))

    assert sources_of(request(*left_out), REFERENCES) == ((), ())


def test_a_shortened_reference_is_a_source() -> None:
    sources, _ = sources_of(request(item("formats", 0.4, "truncated")), REFERENCES)

    assert sources == (Source(title="formats", score=0.4, ref=reference_ref("formats")),)


@pytest.mark.spec("S3.38", "S3.41")
def test_related_documents_are_named_once_and_never_repeat_a_source() -> None:
    _, related = sources_of(request(item("crop", 0.9), item("resize", 0.8)), REFERENCES)

    assert related == ("formats", "Colour Basics")


def test_fetched_pages_that_were_sent_are_sources_with_their_address() -> None:
    page = Fetched(kind="page", url="https://example.com/a", content="…", title="An Example")
    parts = (
        Part(kind="fetched", name="page https://example.com/a", tokens=9),
        Part(kind="fetched", name="web_search https://example.com/b", tokens=9, status="truncated"),
        Part(kind="fetched", name="page https://example.com/c", tokens=0, status="left_out"),
        Part(kind="history", name="message 1", tokens=9),
    )

    sources, related = sources_of(request(parts=parts), REFERENCES, (HeldFetch(1, NOW, page),))

    assert sources == (
        Source(title="An Example", score=1.0, url="https://example.com/a"),
        Source(title="https://example.com/b", score=1.0, url="https://example.com/b"),
    )
    assert related == ()


@pytest.mark.parametrize(
    ("said", "named"), [("Hello.", []), ("Open the Zephyr console, then press the teal lever twice.", ["desk"])]
)
def test_a_reference_that_is_always_sent_is_a_source_only_when_the_answer_used_it(said: str, named: list[str]) -> None:
    desk = {"desk": Reference("desk", "Open the Zephyr console, then press the teal lever twice.")}
    always = replace(item("desk"), include_mode="always")

    ended = TurnEnd(1, desk, (), used_among).of(request(always), (Step(text=said),))

    assert [source.title for source in ended.sources] == named
