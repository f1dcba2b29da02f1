"""Print calls in the terminal: a line for each, one as built or as sent, and a session as its calls tell it."""

from typing import TYPE_CHECKING

from windowpane.cli.render_cache import draw_blamed, draw_losses
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.turns import CallList, CallRecord, CallView, WireSpan
    from windowpane.api.xray import SentCall, XrayReport

UNSEEN = "as built; the wire was not seen"
LARGEST = 10
"""How many tools are listed."""
OWNER_STYLES = {
    "message": "",
    "item": "green",
    "tool": "cyan",
    "setting": "yellow",
    "step": "magenta",
    "model": "blue",
    "mapping": "dim",
}


def draw_calls(screen: Screen, listed: "CallList") -> None:
    """Print one line for each call, and their sum."""
    screen.line()
    screen.line(f"Calls ({len(listed.calls)}):", "bold")
    for call in listed.calls:
        screen.line(f"  {call_line(call)}")
    missing = f"; {counted(listed.without_usage, 'call')} without reported usage" if listed.without_usage else ""
    cost = "cost unknown" if listed.cost_usd is None else f"${listed.cost_usd:.6f}"
    unpriced = f"; {counted(listed.without_price, 'call')} without a price" if listed.without_price else ""
    tokens = f"{listed.usage.input_tokens:,} tokens in, {listed.usage.output_tokens:,} out"
    screen.line(f"  together: {tokens}, {cost}{missing}{unpriced}")


def call_line(call: "CallView") -> str:
    """Return a call in one line."""
    attempt = f", attempt {call.attempt}" if call.attempt > 1 else ""
    status = f" {call.status}" if call.status else ""
    used = "usage unknown"
    if call.usage is not None:
        cached = f" ({call.usage.cache_read_tokens:,} cached)" if call.usage.cache_read_tokens else ""
        used = f"{call.usage.input_tokens:,} in{cached}, {call.usage.output_tokens:,} out"
    took = f", {call.duration_ms:,} ms" if call.duration_ms is not None else ""
    size = f", {call.size:,} bytes" if call.seen else f", {UNSEEN}"
    why = f" – {call.reason}" if call.reason else ""
    return f"{call.number} {call.purpose}, step {call.step}{attempt}: {call.outcome}{status}, {used}{took}{size}{why}"


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
        screen.line("The body was erased." if record.erased else f"This call is known {UNSEEN}.")
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


def draw_report(screen: Screen, report: "XrayReport") -> None:
    """Print the essence of a session."""
    session, together = report.session, report.together
    origin = session.origin
    program = f"{origin.program} {origin.version}".strip() if origin else f"agent {session.agent}"
    screen.line(f"{session.id}  {program}  {session.title}", "bold")
    if origin is not None and origin.parent:
        screen.line(f"begun by {origin.parent}")
    cost = "cost unknown" if together.cost_usd is None else f"${together.cost_usd:.4f}"
    usage = together.usage
    cached = f" ({usage.cache_read_tokens:,} from the cache)" if usage.cache_read_tokens else ""
    screen.line(
        f"{counted(session.turn_count, 'turn')}, {counted(len(report.calls), 'call')}, "
        f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out, {cost}"
    )
    screen.line()
    screen.line("call  turn  outcome    bytes      same as before  tokens in  cached   out", "dim")
    losses = {line.call.id: line for line in report.cache.calls}
    for sent in report.calls:
        screen.line(_line(sent))
        if sent.call.id in losses:
            draw_losses(screen, losses[sent.call.id])
    draw_blamed(screen, report.cache)
    _draw_last(screen, report)
    _draw_tools(screen, report)
    if report.subagents:
        screen.line()
        screen.line("Subagents:", "bold")
        for other in report.subagents:
            screen.line(f"  windowpane xray report {other}")


def _line(sent: "SentCall") -> str:
    call = sent.call
    turn = call.purpose if call.turn is None else f"{call.turn}.{call.step}"
    shared = "" if sent.shared_bytes is None else f"{sent.shared_bytes:,} ({_share(sent.shared_bytes, call.size)})"
    used = ["", "", ""]
    if call.usage is not None:
        used = [f"{call.usage.input_tokens:,}", f"{call.usage.cache_read_tokens:,}", f"{call.usage.output_tokens:,}"]
    why = f"  {call.reason}" if call.reason else ""
    return (
        f"{call.number:>4}  {turn:<6}{call.outcome:<10}{call.size:>9,}  {shared:>15}  "
        f"{used[0]:>9}  {used[1]:>6}{used[2]:>6}{why}"
    )


def _draw_last(screen: Screen, report: "XrayReport") -> None:
    last = next((sent for sent in reversed(report.calls) if sent.call.purpose == "answer" and sent.parts), None)
    if last is None:
        return
    screen.line()
    screen.line(f"What call {last.call.number} was made of:", "bold")
    for name, size in sorted(last.parts.items(), key=lambda part: -part[1]):
        if size * 100 >= last.call.size:
            screen.line(f"  {size:>9,} bytes  {_share(size, last.call.size):>4}  {name}")


def _draw_tools(screen: Screen, report: "XrayReport") -> None:
    if not report.tools:
        return
    unused = [tool for tool in report.tools if not tool.calls]
    size = sum(tool.bytes for tool in unused)
    screen.line()
    screen.line(f"Tools: {len(report.tools)} offered, {len(unused)} never called ({size:,} bytes in each call)", "bold")
    for tool in report.tools[:LARGEST]:
        called = counted(tool.calls, "call") if tool.calls else "never called"
        screen.line(f"  {tool.bytes:>9,} bytes  {tool.name}: {called}")
    if len(report.tools) > LARGEST:
        screen.line(f"  and {len(report.tools) - LARGEST} smaller ones")


def _share(part: int, whole: int) -> str:
    return f"{part * 100 // whole}%" if whole else ""
