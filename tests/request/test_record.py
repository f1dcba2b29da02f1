from __future__ import annotations

from datetime import UTC, datetime

from windowpane.context.ids import RequestId
from windowpane.context.items import tool_ref
from windowpane.context.request import (
    Budget,
    CallSettings,
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
