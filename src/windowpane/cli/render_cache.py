"""Print what calls read from the provider's cache, and what broke the prefix."""

from typing import TYPE_CHECKING

from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from decimal import Decimal

    from windowpane.api.comparison import CacheCollapse, CacheReport, CallCache, PrefixBreak


def draw_cache(screen: Screen, report: "CacheReport") -> None:
    """Print one line for each call, each break below its call, and what is to blame."""
    if not report.calls:
        screen.line("No calls to a model are recorded for this session.")
        return
    if all(line.call.built_in for line in report.calls):
        screen.line("Every call was in this process: there is no provider's cache to read from.")
        return
    screen.line(f"{'call':>4}  {'turn':<8}{'read':>9}{'written':>9}{'plain':>9}{'expected':>10}", "dim")
    for line in report.calls:
        screen.line(_line(line))
        draw_losses(screen, line)
    screen.line(
        f"together: {report.read_tokens:,} tokens read from the cache, {report.written_tokens:,} written, "
        f"{report.plain_tokens:,} plain"
    )
    if not report.blamed:
        screen.line("The prefix did not break.")
    draw_blamed(screen, report)


def draw_losses(screen: Screen, line: "CallCache") -> None:
    """Print what broke a call's prefix, and that the cache collapsed, below the line of the call."""
    if line.broke is not None:
        _draw_break(screen, line.broke)
    if line.collapse is not None:
        screen.line(f"      {_collapse(line.collapse)}", "yellow")


def draw_blamed(screen: Screen, report: "CacheReport") -> None:
    """Print what broke the prefix in a session, the dearest first."""
    if not report.blamed:
        return
    screen.line()
    screen.line(f"What broke the prefix ({_billed(report.lost_tokens, report.lost_usd)}):", "bold")
    for item in report.blamed:
        breaks = counted(item.breaks, "break")
        screen.line(f"  {item.name}: {breaks}, {_billed(item.lost_tokens, item.cost_usd)}")


def _line(line: "CallCache") -> str:
    call = line.call
    turn = call.purpose if call.turn is None else f"{call.turn}.{call.step}"
    used = (line.read_tokens, line.written_tokens, line.plain_tokens)
    unknown = "–" if call.built_in else "?"
    read, written, plain = (unknown if tokens is None else f"{tokens:,}" for tokens in used)
    expected = unknown if line.expected_tokens is None else f"{line.expected_tokens:,}"
    failed = f"  {call.outcome}" if call.outcome != "complete" else ""
    return f"{call.number:>4}  {turn:<8}{read:>9}{written:>9}{plain:>9}{expected:>10}{failed}"


def _draw_break(screen: Screen, broke: "PrefixBreak") -> None:
    where = f" ({broke.at})" if broke.item else ""
    cost = _billed(broke.lost_tokens, broke.cost_usd)
    screen.line(f"      the prefix broke at {broke.blamed}{where}, because {broke.reason}: {cost}", "yellow")
    if broke.before:
        screen.line(f"      − {broke.before}", "dim")
    if broke.after:
        screen.line(f"      + {broke.after}", "dim")


def _collapse(collapse: "CacheCollapse") -> str:
    cost = "" if collapse.cost_usd is None else f", ${collapse.cost_usd:.6f}"
    return f"the cache collapsed: {collapse.missing_tokens:,} tokens fewer than expected{cost}; {collapse.reason}"


def _billed(tokens: int, cost: "Decimal | None") -> str:
    return f"{tokens:,} tokens billed again, " + ("cost unknown" if cost is None else f"${cost:.6f}")
