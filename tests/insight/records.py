"""Records of requests, written down by hand for tests of how they are shown."""

from dataclasses import replace
from datetime import UTC, datetime

from windowpane.context.ids import RequestId
from windowpane.context.items import IncludeMode
from windowpane.context.request import Budget, CallSettings, ContextItem, Evidence, ItemStatus, Query, RequestContext


def rule(
    name: str, mode: IncludeMode, priority: int | None = 500, score: float | None = None, status: ItemStatus = "used"
) -> ContextItem:
    return ContextItem(
        type="rule",
        name=name,
        include_mode=mode,
        priority=priority,
        status=status,
        reason="why",
        evidence=None if score is None else Evidence(score),
        tokens=7,
    )


def reference(name: str, mode: IncludeMode, priority: int = 500, score: float | None = None) -> ContextItem:
    return replace(rule(name, mode, priority, score), type="reference")


def tool(server: str, name: str, mode: IncludeMode, score: float | None = None) -> ContextItem:
    return replace(rule(name, mode, None, score), type="tool", server=server)


def context(*items: ContextItem) -> RequestContext:
    return RequestContext(
        id=RequestId("req_1"),
        turn=1,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        agent="guide",
        settings=CallSettings(model="echo"),
        query=Query(text="hello"),
        items=items,
        budget=Budget(window_tokens=1000, reply_tokens=100, used_tokens=200),
    )
