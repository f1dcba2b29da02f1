"""Print a session as its calls tell it: what was sent, what it is made of, and what of it is of no use."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from windowpane.cli.render_cache import draw_blamed, draw_losses
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from decimal import Decimal

    from windowpane.api.comparison import CallCache, CallComparison
    from windowpane.api.turns import SentKind, SentPart
    from windowpane.api.xray import SentCall, SentShare, XrayReport
    from windowpane.xray.importing.report import ImportReport

LARGEST = 10
"""How many tools, parts and texts are listed."""

KIND_NAMES = {
    "tool": "tools",
    "system": "system prompt",
    "environment": "environment",
    "instructions": "instruction files",
    "skills": "skills",
    "mcp": "MCP server instructions",
    "reminder": "reminders",
    "billing": "billing and attribution",
    "message": "user messages",
    "reply": "the model's replies",
    "thinking": "thinking",
    "call": "tool calls",
    "result": "tool results",
    "attachment": "attachments",
    "setting": "settings",
}
SINGLE = {"tool": "tool", "reply": "reply", "message": "user message", "call": "call", "result": "result of"}
DIFF_HEAD = "--- before\n+++ after\n"
HAPPENED = {"entered": "+", "left": "-", "changed": "~", "moved": "="}


def draw_report(screen: Screen, report: "XrayReport") -> None:
    """Print the essence of a session."""
    _draw_head(screen, report)
    screen.line()
    screen.line("call  turn  outcome       bytes  tokens in  could be cached    cached    out", "dim")
    caches = {line.call.id: line for line in report.cache.calls}
    for sent in report.calls:
        cache = caches.get(sent.call.id)
        screen.line(_line(sent, cache))
        if cache is not None:
            draw_losses(screen, cache)
    draw_blamed(screen, report.cache)
    _draw_made_of(screen, report)
    _draw_growth(screen, report)
    _draw_tools(screen, report)
    _draw_waste(screen, report)
    if report.subagents:
        screen.line()
        screen.line("Subagents:", "bold")
        for other in report.subagents:
            screen.line(f"  windowpane xray report {other}")


def draw_comparison(screen: Screen, found: "CallComparison") -> None:
    """Print what is different between two calls."""
    screen.line(
        f"call {found.before.number} → {found.after.number}: {found.before_tokens:,} → {found.after_tokens:,} tokens; "
        f"the first {found.same_tokens:,} tokens are the same",
        "bold",
    )
    if not found.changes:
        screen.line("The same parts.")
    for change in found.changes:
        name = _named(change.kind, change.name)
        screen.line(f"{HAPPENED[change.happened]} {name} ({change.tokens:+,} tokens)", "bold")
        for line in change.diff.removeprefix(DIFF_HEAD).splitlines():
            style = {"+": "green", "-": "red"}.get(line[:1], "dim")
            screen.line(f"    {line}", style)


def _draw_head(screen: Screen, report: "XrayReport") -> None:
    session, together = report.session, report.together
    origin = session.origin
    program = f"{origin.program} {origin.version}".strip() if origin else f"agent {session.agent}"
    screen.line(f"{session.id}  {program}  {session.title}", "bold")
    if origin is not None and origin.parent:
        screen.line(f"begun by {origin.parent}")
    if origin is not None and origin.source:
        screen.line(f"imported from {origin.source}, which does not tell {in_words(origin.not_told)}")
    usage = together.usage
    cached = f" ({usage.cache_read_tokens:,} from the cache)" if usage.cache_read_tokens else ""
    used = f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out, {_cost(together.cost_usd)}"
    if report.calls and all(sent.call.built_in and sent.call.usage is None for sent in report.calls):
        used = "in this process, free"
    screen.line(f"{counted(session.turn_count, 'turn')}, {counted(len(report.calls), 'call')}, {used}")
    if report.window_tokens and report.last is not None:
        used = sum(part.tokens for part in report.parts)
        screen.line(
            f"call {report.last} fills {_share(used, report.window_tokens)} of the window "
            f"({used:,} of {report.window_tokens:,} tokens)"
        )


def _line(sent: "SentCall", cache: "CallCache | None") -> str:
    call = sent.call
    turn = call.purpose if call.turn is None else f"{call.turn}.{call.step}"
    expected = "" if cache is None or cache.expected_tokens is None else f"{cache.expected_tokens:,}"
    used = ["", "", ""]
    if call.usage is not None:
        given = f"{call.usage.input_tokens:,}" if call.usage.input_tokens else "?"
        said = "?" if call.output_unknown else f"{call.usage.output_tokens:,}"
        used = [given, f"{call.usage.cache_read_tokens:,}", said]
    why = f"  {call.reason}" if call.reason else ""
    return (
        f"{call.number:>4}  {turn:<6}{call.outcome:<10}{call.size:>9,}  "
        f"{used[0]:>9}  {expected:>15}  {used[1]:>8}{used[2]:>7}{why}"
    )


def _draw_made_of(screen: Screen, report: "XrayReport") -> None:
    last = next((sent for sent in report.calls if sent.call.number == report.last), None)
    if last is None:
        return
    whole = sum(share.tokens for share in last.kinds)
    screen.line()
    screen.line(f"What call {last.call.number} was made of ({whole:,} tokens):", "bold")
    for share in last.kinds:
        if share.tokens:
            cost = "" if share.cost_usd is None else f"  ${share.cost_usd:.4f}"
            screen.line(f"  {share.tokens:>9,} tokens  {_share(share.tokens, whole):>4}{cost}  {_kind_text(share)}")
    listed = [part for part in _largest(report.parts) if part.kind not in ("tool", "setting")]
    screen.line("  The largest parts:", "dim")
    for part in listed[:LARGEST]:
        screen.line(f"  {part.tokens:>9,} tokens  {_named(part.kind, part.name)}")


def _named(kind: "SentKind", name: str) -> str:
    """Return a part's kind and name, or one of them where they are the same word."""
    title = SINGLE.get(kind, kind)
    return title if name.lower() in ("", title) else f"{title} {name}"


def _kind_text(share: "SentShare") -> str:
    return f"{KIND_NAMES[share.kind]} ({share.parts})" if share.parts > 1 else KIND_NAMES[share.kind]


def _largest(parts: "tuple[SentPart, ...]") -> "list[SentPart]":
    return sorted(parts, key=lambda part: -part.tokens)


def _draw_growth(screen: Screen, report: "XrayReport") -> None:
    sent = [each for each in report.calls if each.call.purpose == "answer" and each.kinds]
    if len(sent) < 2:
        return
    first, last = ({share.kind: share.tokens for share in each.kinds} for each in (sent[0], sent[-1]))
    grown = {kind: last.get(kind, 0) - first.get(kind, 0) for kind in (*first, *last)}
    changed = sorted(((kind, tokens) for kind, tokens in grown.items() if tokens), key=lambda pair: -abs(pair[1]))
    screen.line()
    screen.line(
        f"From call {sent[0].call.number} to call {sent[-1].call.number}: "
        f"{sum(first.values()):,} → {sum(last.values()):,} tokens",
        "bold",
    )
    for kind, tokens in changed:
        screen.line(f"  {tokens:>+9,} tokens  {KIND_NAMES[kind]}")


def _draw_tools(screen: Screen, report: "XrayReport") -> None:
    if not report.tools:
        return
    unused = [tool for tool in report.tools if not tool.calls]
    tokens, session = sum(tool.tokens for tool in unused), sum(tool.session_tokens for tool in unused)
    screen.line()
    screen.line(
        f"Tools: {len(report.tools)} offered, {len(unused)} never called "
        f"({tokens:,} tokens in each call, {session:,} in the session)",
        "bold",
    )
    for tool in report.tools[:LARGEST]:
        called = counted(tool.calls, "call") if tool.calls else "never called"
        server = f" (server {tool.server})" if tool.server else ""
        screen.line(f"  {tool.tokens:>9,} tokens  {tool.name}{server}: {called}")
    if len(report.tools) > LARGEST:
        screen.line(f"  and {len(report.tools) - LARGEST} smaller ones")


def _draw_waste(screen: Screen, report: "XrayReport") -> None:
    if report.stale:
        screen.line()
        screen.line(f"Read more than once (call {report.last} still holds the old results):", "bold")
        for old in report.stale[:LARGEST]:
            screen.line(f"  {old.tokens:>9,} tokens  {old.tool} {old.subject}: {old.reads} times")
    if report.repeated:
        screen.line()
        screen.line(f"The same text more than once in call {report.last}:", "bold")
        for text in report.repeated[:LARGEST]:
            screen.line(f"  {text.tokens:>9,} tokens  {_named(text.kind, text.name)}: {text.copies} copies")


def _cost(cost: "Decimal | None") -> str:
    return "cost unknown" if cost is None else f"${cost:.4f}"


def _share(part: int, whole: int) -> str:
    return f"{part * 100 // whole}%" if whole else ""


LISTED = 20
"""How many sessions, and how many lines that could not be read, are named."""

MISSING = {
    "wire": "the bytes that were sent",
    "system": "the system prompt",
    "tools": "the definitions of tools",
    "messages": "what was said",
    "usage": "the tokens of some calls",
    "failures": "calls that failed",
}
"""What a source may not tell, in words."""


def in_words(not_told: Collection[str]) -> str:
    """Return what a source does not tell."""
    words = [words for name, words in MISSING.items() if name in not_told]
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def draw_import(screen: Screen, report: "ImportReport", *, as_json: bool) -> None:
    """Print what was imported, what its sources do not tell, and what could not be read."""
    if as_json:
        screen.json(report)
        return
    new = [line for line in report.sessions if line.calls]
    before = f"; {counted(report.known, 'call')} had been imported before" if report.known else ""
    screen.line(f"{counted(report.calls, 'call')} imported into {counted(len(new), 'session')}{before}", "bold")
    if report.recorded:
        screen.remark(f"{counted(report.recorded, 'call')} recorded by the proxy already, and not imported again")
    for line in new[:LISTED]:
        screen.line(f"  windowpane xray report {line.id}    {line.source}, {counted(line.calls, 'call')}")
    if len(new) > LISTED:
        screen.line(f"  and {len(new) - LISTED} more: windowpane sessions list")
    for source in dict.fromkeys(line.source for line in new):
        missing = {name for line in new if line.source == source for name in line.not_told}
        screen.remark(f"{source} does not tell {in_words(missing)}")
    if report.others:
        screen.remark(f"{counted(report.others, 'other file')} left alone")
    if report.unread:
        screen.remark(f"Not read ({len(report.unread)}):", "yellow")
        for each in report.unread[:LISTED]:
            screen.remark(f"  {each.path}{f':{each.line}' if each.line else ''}: {each.why}")
        if len(report.unread) > LISTED:
            screen.remark(f"  and {len(report.unread) - LISTED} more")
