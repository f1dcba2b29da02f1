from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from windowpane.context.ids import RequestId
from windowpane.context.items import tool_ref
from windowpane.context.request import (
    Budget,
    CallSettings,
    Candidate,
    Evidence,
    Passage,
    Query,
    ReplyOptions,
    Request,
    RequestContext,
    ResponseFormat,
)
from windowpane.request.record import context_of, to_blobs

READ = tool_ref("files", "read")
OPTIONS = ReplyOptions(must_call=(READ,), response_format=ResponseFormat(schema={"type": "object"}, name="Place"))
CONTEXT = RequestContext(
    id=RequestId("r1"),
    turn=1,
    timestamp=datetime(2026, 5, 1, tzinfo=UTC),
    agent="pane",
    settings=CallSettings(model="echo", reply_options=OPTIONS),
    query=Query(text="Hi"),
    items=(),
    budget=Budget(window_tokens=8_000, reply_tokens=1_000, used_tokens=10),
)


def test_a_record_of_the_time_when_reply_options_were_called_demands_is_read() -> None:
    name, texts = to_blobs(Request(messages=(), tools=(), context=CONTEXT), {})
    old = texts[name].replace('"reply_options"', '"demands"').replace('"response_format"', '"form"')

    assert '"demands":{"must_call":[{' in old
    assert (context_of(texts[name], texts), context_of(old, texts)) == (CONTEXT, CONTEXT)


NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
EVIDENCE = st.builds(
    Evidence,
    score=st.floats(0, 1),
    meaning=NUMBERS,
    words=NUMBERS,
    rank=st.none() | st.integers(1, 200),
    passage=st.none() | st.builds(Passage, text=st.text(), start=st.integers(0, 9), end=st.integers(0, 99)),
    cut_off=NUMBERS,
    floor=NUMBERS,
)
CANDIDATES = st.builds(
    Candidate,
    type=st.sampled_from(["rule", "reference", "tool"]),
    name=st.text(),
    server=st.none() | st.text(),
    reason=st.text(),
    code=st.text(),
    evidence=st.none() | EVIDENCE,
)


@given(st.lists(CANDIDATES).map(tuple))
def test_candidates_are_read_as_they_were_considered(candidates: tuple[Candidate, ...]) -> None:
    considered = replace(CONTEXT, candidates=candidates)

    name, texts = to_blobs(Request(messages=(), tools=(), context=considered), {})

    assert context_of(texts[name], texts) == considered


@given(st.lists(CANDIDATES).map(tuple))
def test_a_record_of_the_time_when_every_field_was_written_is_read(candidates: tuple[Candidate, ...]) -> None:
    considered = replace(CONTEXT, candidates=candidates)
    context = TypeAdapter(RequestContext).dump_python(considered, mode="json")

    old = json.dumps({"context": context, "messages": [], "tools": [], "declared": None, "query": None})

    assert context_of(old, {}) == considered
