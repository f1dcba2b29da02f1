"""Match every expression of the package with texts that grow, and print those that do not come to an end.

It runs as a process of its own, whose signals break off a match that takes too long. What is limited is processor time,
and so generously that only work that grows with the square of a text reaches it: a text of 60,000 characters is read in
milliseconds, and takes minutes where each character is looked at again for each other one.
"""

from __future__ import annotations

import json
import math
import re
import signal
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from linear.expressions import Expression, expressions
from linear.pumps import pumps

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORT, LONG = 4_000, 60_000
SHORT_S, CEILING_S = 0.002, 1.0


class _TooMuchWorkError(Exception):
    pass


def slow(found: Iterable[Expression]) -> list[dict[str, Any]]:
    """Return the expressions that some text keeps busy for too long, each with the first such text."""
    signal.signal(signal.SIGVTALRM, _stop)
    return [{"place": each.place, "pattern": repr(each.pattern), **worst} for each in found if (worst := _worst(each))]


def _worst(each: Expression) -> dict[str, Any] | None:
    compiled = re.compile(each.pattern, each.flags)
    for pump in pumps(each.pattern, each.flags):
        for method in each.methods:
            # A text that is read at once when it is short is not worth more time: its square would show already.
            if _seconds(compiled, method, pump, SHORT) > SHORT_S and _seconds(compiled, method, pump, LONG) > CEILING_S:
                before, part, end = pump
                return {"method": method, "before": before, "repeated": part, "end": end}
    return None


def _seconds(compiled: re.Pattern[Any], method: str, pump: tuple[str, str, str], length: int) -> float:
    """Return the processor time of one match; that of one that was broken off is more than the ceiling."""
    before, part, end = pump
    text: str | bytes = before + part * (length // len(part)) + end
    if isinstance(compiled.pattern, bytes):
        text = text.encode("utf-8", "surrogatepass")
    started = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, CEILING_S)
    try:
        if method in ("match", "fullmatch", "search"):
            getattr(compiled, method)(text)
        else:
            deque(compiled.finditer(text), maxlen=0)
    except _TooMuchWorkError:
        return math.inf
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - started


def _stop(signum: int, frame: object) -> None:
    raise _TooMuchWorkError


if __name__ == "__main__":
    sys.stdout.write(json.dumps(slow(expressions())))
