"""Print calls in the terminal: a line for each, and one as built or as sent."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.turns import CallList, CallRecord, CallView, WireSpan

UNSEEN = "as built; the wire was not seen"
TOLD = "as its source tells it; the wire was not seen"
BUILT_IN = "in this process; nothing was sent"
OWNER_STYLES = {
    "message": "",
    "item": "green",
    "tool": "cyan",
    "setting": "yellow",
    "step": "magenta",
    "model": "blue",
    "mapping": "dim",
}


def draw_calls(screen: Screen, listed: "CallList", *, turns: bool = False) -> None:
    """Print one line for each call, with its turn if asked, and their sum."""
    screen.line(f"Calls ({len(listed.calls)}):", "bold")
    if not listed.calls:
        screen.line("  none")
        return
    for call in listed.calls:
        turn = f"turn {call.turn}: " if turns and call.turn is not None else ""
        screen.line(f"  {turn}{call_line(call)}")
    screen.line(f"  together: {_together(listed)}")


def _together(listed: "CallList") -> str:
    """Return what calls used and cost. Of built-in models there is only what we counted."""
    built_in = [call for call in listed.calls if call.built_in and call.usage is None]
    if len(built_in) == len(listed.calls):
        return ", ".join(filter(None, (_counted_text(built_in), "free")))
    missing = f"; {counted(listed.without_usage, 'call')} without reported usage" if listed.without_usage else ""
    cost = "cost unknown" if listed.cost_usd is None else f"${listed.cost_usd:.6f}"
    unpriced = f"; {counted(listed.without_price, 'call')} without a price" if listed.without_price else ""
    given, said = (
        "unknown" if listed.without_usage and not tokens else f"{tokens:,}"
        for tokens in (listed.usage.input_tokens, listed.usage.output_tokens)
    )
    apart = f"; {counted(len(built_in), 'call')} in this process, free" if built_in else ""
    return f"{given} tokens in, {said} out, {cost}{missing}{unpriced}{apart}"


def _counted_text(calls: Sequence["CallView"]) -> str:
    """Return how many tokens we counted in calls, or nothing where we did not."""
    tokens = [call.counted_tokens for call in calls if call.counted_tokens is not None]
    return f"{counted(sum(tokens), 'token')} in by our own count" if tokens else ""


def call_line(call: "CallView") -> str:
    """Return a call in one line."""
    attempt = f", attempt {call.attempt}" if call.attempt > 1 else ""
    status = f" {call.status}" if call.status else ""
    used = _counted_text([call]) if call.built_in else "usage unknown"
    if call.usage is not None:
        cached = f" ({call.usage.cache_read_tokens:,} cached)" if call.usage.cache_read_tokens else ""
        given = f"{call.usage.input_tokens:,}" if call.usage.input_tokens else "unknown"
        said = "unknown" if call.output_unknown else f"{call.usage.output_tokens:,}"
        used = f"{given} in{cached}, {said} out"
    took = f", {call.duration_ms:,} ms" if call.duration_ms is not None else ""
    why = f" – {call.reason}" if call.reason else ""
    told = ", ".join(filter(None, (f"{call.outcome}{status}", used)))
    return f"{call.number} {call.purpose}, step {call.step}{attempt}: {told}{took}, {_wire(call)}{why}"


def _wire(call: "CallView") -> str:
    if call.built_in:
        return BUILT_IN
    return f"{call.size:,} bytes" if call.seen else TOLD if call.size else UNSEEN


def draw_call(screen: Screen, record: "CallRecord") -> None:
    """Print a call as it was built. Messages that are new since the call before are marked with a plus."""
    screen.line(call_line(record.call), "bold")
    old = len(record.messages) - record.added
    for place, message in enumerate(record.messages):
        mark = "+" if place >= old else " "
        called = f", answers {message.tool_call_id}" if message.tool_call_id else ""
        failed = ", failed" if message.is_error else ""
        tokens = counted(record.message_tokens[place], "token")
        screen.line(f"─{mark}─ {message.role} ({message.part}{called}{failed}, {tokens})", "bold")
        screen.write(message.content)
        screen.line()
        for call in message.tool_calls:
            screen.line(f"calls {call.offered_name} as {call.id}: {call.arguments}")


def draw_wire(screen: Screen, record: "CallRecord") -> None:
    """Print a call as it was sent: its head, its body in the colours of the owners, and how many bytes each owns."""
    screen.line(call_line(record.call), "bold")
    if record.head is None or record.body is None:
        unseen = (
            "Its model runs in this process: nothing was sent."
            if record.call.built_in
            else f"This call is known {UNSEEN}."
        )
        screen.line("The body was erased." if record.erased else unseen)
        return
    screen.line(f"{record.head.method} {record.head.url}")
    for name, value in record.head.headers:
        screen.line(f"{name}: {value}", "dim")
    screen.line()
    for span in record.spans:
        screen.write(record.body[span.start : span.end], OWNER_STYLES[span.kind])
    screen.line()
    screen.line()
    screen.line("Owners:", "bold")
    for owner, size in _sizes(record.body, record.spans):
        screen.line(f"  {size:>8,} bytes  {owner}")
    screen.line(f"sha256 {record.sha256}", "dim")
    if record.changes:
        screen.line(f"Changed on the way ({len(record.changes)}):", "bold")
    for change in record.changes:
        screen.line(f"  {change.where}: {_short(change.built)} → {_short(change.sent)} – {change.why}")


def _sizes(body: str, spans: "tuple[WireSpan, ...]") -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for span in spans:
        owner = f"{span.kind} {span.owner}"
        found[owner] = found.get(owner, 0) + len(body[span.start : span.end].encode())
    return sorted(found.items(), key=lambda owned: -owned[1])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return (line if len(line) <= 60 else f"{line[:60]}…") or "nothing"
