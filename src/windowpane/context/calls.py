"""Calls: every HTTP request to a provider, as it was sent.

A call is recorded by two events of the log, `call.sent` and `call.ended`. A request is what was built; a call is what
was sent, with retries, calls for a summary and calls whose answer broke off.
"""

from dataclasses import dataclass
from typing import Literal

CallPurpose = Literal["answer", "summary", "embedding"]
"""What a call was made for."""

CallOutcome = Literal["complete", "cut", "error"]
"""How a call ended: with a whole answer, with one that broke off, or with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireHead:
    """The head of an HTTP request: where it went and with which headers. Values of keys are taken out."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
