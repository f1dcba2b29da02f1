"""The parts of recorded calls, weighed: read from the ledger and taken apart in a thread."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

import anyio.to_thread

from windowpane.api.comparison import CallComparison
from windowpane.api.turns import CallView, OwnerKind, SentKind, SentPart, WireSpan
from windowpane.calls.ledger import RecordedCall
from windowpane.calls.parts.body import CutPart, cut
from windowpane.calls.parts.compare import as_read, kind_differences, part_changes, shared_tokens
from windowpane.calls.parts.waste import Weighed
from windowpane.calls.parts.weight import PartWeights
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.insight.past import PastRecords
from windowpane.models.prices import cost_of
from windowpane.text.shared_prefix import shared_prefix

OWNERS: Mapping[SentKind, OwnerKind] = {
    "tool": "tool",
    "reply": "model",
    "thinking": "model",
    "call": "step",
    "result": "step",
    "setting": "setting",
}
"""Whose bytes the parts of a recorded program's body are; those of the others are messages."""


@dataclass(slots=True)
class PartReader:
    """Takes calls of a session apart. Texts that several calls hold are counted once."""

    engine: PastRecords
    session_id: SessionId
    _weights: PartWeights = field(default_factory=PartWeights)

    async def body(self, call: RecordedCall) -> str:
        """Return the body of a call; empty when it was not seen or is erased."""
        wire = await self.engine.calls.wire(self.session_id, call)
        return wire.body.decode("utf-8", "replace") if wire is not None and wire.body is not None else ""

    async def parts(self, call: RecordedCall, body: str) -> Weighed:
        """Return the parts of a call's body with their weight."""
        return await anyio.to_thread.run_sync(self._parts, call, body)

    def _parts(self, call: RecordedCall, body: str) -> list[tuple[CutPart, SentPart]]:
        def price(usage: Usage) -> Decimal | None:
            return cost_of(replace(call, usage=usage))

        parts = cut(body)
        return list(zip(parts, self._weights.weigh(body, parts, call.usage, price), strict=True))


def owner_spans(body: str) -> tuple[WireSpan, ...]:
    """Return whose each stretch of a body is that was not built here: its parts say it."""
    return tuple(
        WireSpan(
            start=part.start,
            end=part.end,
            kind=OWNERS.get(part.kind, "message"),
            owner=f"{part.kind} {part.name}" if part.name else "",
        )
        for part in cut(body)
    )


async def compare_calls(
    engine: PastRecords,
    session_id: SessionId,
    before: tuple[RecordedCall, CallView],
    after: tuple[RecordedCall, CallView],
) -> CallComparison:
    """Return what is different between two calls of a session."""
    reader = PartReader(engine, session_id)
    bodies = [await reader.body(call) for call, _ in (before, after)]
    one, other = [
        as_read(await reader.parts(call, body)) for (call, _), body in zip((before, after), bodies, strict=True)
    ]
    changes = await anyio.to_thread.run_sync(lambda: tuple(part_changes(one, other)))
    return CallComparison(
        before=before[1],
        after=after[1],
        before_tokens=sum(weighed.tokens for _, weighed in one),
        after_tokens=sum(weighed.tokens for _, weighed in other),
        same_bytes=shared_prefix(*(body.encode("utf-8", "surrogatepass") for body in bodies)),
        same_tokens=shared_tokens(one, other),
        changes=changes,
        tokens_by_kind=kind_differences(one, other),
    )
