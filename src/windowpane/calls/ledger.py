"""Read calls from the log: each with how it ended, in the order in which they were sent.

A model that runs in this process, and a provider whose client takes no transport of ours, leave no `call.sent`. Their
calls are told from the steps of the answer: as built, the wire was not seen. Imported calls were not seen either. A
reply of no model in a turn without a request was said elsewhere, before the session began: no call of this server's.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from windowpane.context.calls import CallOutcome, CallPurpose, ModelPrice, known_usage
from windowpane.context.events import CallEnded, CallSent, ModelReplied, Recorded, RequestBuilt, TurnFinished
from windowpane.context.ids import BlobHash
from windowpane.context.messages import Usage, is_built_in

PastOutcome = CallOutcome | Literal["retried", "running", "lost"]
"""An error that was tried again is `retried`. Without an end a call is `running`, or `lost` with its worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call as the log has it; `seq` is where.

    `seen` tells whether the bytes were seen on the wire. Otherwise the call is known as it was built, without head,
    body and hash; or, when it was read from a log or a trace, they are put together from what that tells. `usage` is
    None when the provider reported none, and `output_unknown` tells that it reported the input alone. `address` is
    where the call went, and `price` what the agent said that the model costs.
    """

    id: str
    seq: int
    turn: int | None
    step: int
    attempt: int
    purpose: CallPurpose
    model: str
    started_at: datetime
    outcome: PastOutcome
    seen: bool = True
    head: BlobHash | None = None
    body: BlobHash | None = None
    sha256: str = ""
    size: int = 0
    status: int | None = None
    first_byte_ms: int | None = None
    duration_ms: int | None = None
    usage: Usage | None = None
    output_unknown: bool = False
    address: str = ""
    price: ModelPrice | None = None
    reason: str = ""
    answer: BlobHash | None = None

    @property
    def known_usage(self) -> Usage | None:
        """Return what the call used, or None when that is not known in full."""
        return known_usage(self.usage, output_unknown=self.output_unknown)

    @property
    def built_in(self) -> bool:
        """Tell whether a built-in model was called: nothing was sent, and there is nothing to report or to pay."""
        return not self.seen and not self.size and is_built_in(self.model)


def calls_of(events: Iterable[Recorded]) -> tuple[RecordedCall, ...]:
    """Return the calls of a stretch of the log."""
    reader = _Reader()
    for entry in events:
        reader.read(entry)
    return reader.all()


class _Reader:
    def __init__(self) -> None:
        self._calls: dict[str, RecordedCall] = {}
        self._steps: dict[int, int] = {}
        self._built: set[int] = set()

    def read(self, entry: Recorded) -> None:
        match entry.event:
            case CallSent() as sent:
                self._sent(entry, sent)
            case CallEnded() as ended:
                self._ended(ended)
            case RequestBuilt(turn=turn):
                self._built.add(turn)
            case ModelReplied() as replied:
                self._replied(entry, replied)
            case TurnFinished(turn=turn):
                self._close(turn)
            case _:
                pass

    def all(self) -> tuple[RecordedCall, ...]:
        return tuple(self._calls.values())

    def _sent(self, entry: Recorded, sent: CallSent) -> None:
        for call in self._calls.values():
            before = (sent.turn, sent.purpose, sent.step)
            if (call.turn, call.purpose, call.step) == before and call.outcome in {"error", "cut"}:
                self._calls[call.id] = replace(call, outcome="retried")
        self._calls[sent.id] = RecordedCall(
            id=sent.id,
            seq=entry.seq,
            turn=sent.turn,
            step=sent.step,
            attempt=sent.attempt,
            purpose=sent.purpose,
            model=sent.model,
            started_at=entry.at,
            outcome="running",
            head=sent.head,
            body=sent.body,
            sha256=sent.sha256,
            size=sent.size,
            seen=sent.seen,
        )

    def _ended(self, ended: CallEnded) -> None:
        if call := self._calls.get(ended.id):
            self._calls[ended.id] = replace(
                call,
                outcome=ended.outcome,
                status=ended.status,
                first_byte_ms=ended.first_byte_ms,
                duration_ms=ended.duration_ms,
                usage=ended.usage,
                output_unknown=ended.output_unknown,
                address=ended.address,
                price=ended.price,
                reason=ended.reason,
                answer=ended.answer,
            )

    def _replied(self, entry: Recorded, replied: ModelReplied) -> None:
        step = self._steps[replied.turn] = self._steps.get(replied.turn, 0) + 1
        if replied.turn not in self._built and not replied.step.model:
            return
        if any((call.turn, call.step, call.purpose) == (replied.turn, step, "answer") for call in self._calls.values()):
            return
        said = replied.step
        unseen = f"{replied.turn}.{step}"
        self._calls[unseen] = RecordedCall(
            id=unseen,
            seq=entry.seq,
            turn=replied.turn,
            step=step,
            attempt=1,
            purpose="answer",
            model=said.model,
            started_at=entry.at,
            outcome="cut" if said.finish_reason in {"cancelled", "interrupted"} else "complete",
            seen=False,
            duration_ms=said.latency_ms,
            usage=said.usage if said.usage != Usage() else None,
            price=replied.price,
        )

    def _close(self, turn: int) -> None:
        """A turn that is over has no call that runs: the worker that would have told its end is gone."""
        for call in self._calls.values():
            if call.turn == turn and call.outcome == "running":
                self._calls[call.id] = replace(call, outcome="lost")
