"""Print a request in the terminal: the groups of `insight/view.py`, then everything else on record."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from windowpane.cli.terminal import Screen, counted, styled, visible
from windowpane.context.ids import BlobHash
from windowpane.context.items import IncludeMode, ItemRef
from windowpane.context.request import Budget, Candidate, Evidence, Request, RequestContext
from windowpane.insight.view import (
    NO_CONTEXT,
    ContextPartRow,
    ContextRow,
    Since,
    changes_since,
    columns,
    groups_of,
    heading,
    parts,
    summary,
)

if TYPE_CHECKING:
    from rich.text import Text

BADGE_STYLES: Mapping[IncludeMode, str] = {"always": "green", "manual": "cyan", "agent": "magenta"}
GROUP_TITLES = ("Rules", "References", "Tools")


def print_request(
    request: Request | None, now: Mapping[ItemRef, BlobHash] | None, *, messages: bool, as_json: bool
) -> None:
    """Print a request in the form that was asked for. `now` has the hashes of the agent's items today."""
    screen = Screen()
    if as_json:
        # Messages are long and often private: the JSON has them when they are asked for.
        screen.json(request, leave_out=None if messages else {"messages", "tools"})
    elif request is None:
        screen.line(NO_CONTEXT)
    elif messages:
        draw_request(screen, request)
    else:
        draw_context(screen, request.context, changes_since(request.context, now) if now is not None else None)


def draw_context(screen: Screen, context: RequestContext | None, since: Mapping[ItemRef, Since] | None = None) -> None:
    """Print everything on record about one request."""
    if context is None:
        screen.line(NO_CONTEXT)
        return
    screen.line("Context Used:", "bold")
    screen.line(summary(context))
    for title, rows in zip(GROUP_TITLES, groups_of(columns(context, since)), strict=True):
        screen.line()
        screen.line(heading(title, rows), "bold")
        draw_rows(screen, rows)
    screen.line()
    screen.line("Parts:", "bold")
    for part in parts(context):
        screen.line(f"  {_part_text(part)}")
    screen.line(f"Budget: {budget_text(context.budget)}")
    screen.line(f"Model: {context.settings.model}, turn {context.turn}, {context.timestamp:%Y-%m-%d %H:%M:%S} UTC")
    if context.candidates:
        screen.line()
        draw_candidates(screen, context.candidates)
    draw_degraded(screen, context.degraded)


def draw_why(screen: Screen, context: RequestContext | None) -> None:
    """Print what selection looked for, what it chose, and what it left out."""
    if context is None:
        screen.line(NO_CONTEXT)
        return
    because = f" ({context.query.reason})" if context.query.reason else ""
    screen.line(f"Searched for: {' '.join(context.query.text.split())}{because}")
    chosen = [item for item in context.items if item.selected]
    screen.line(f"Selected ({len(chosen)}):", "bold")
    for item in chosen:
        screen.line(f"  {item.ref}{_scored(item.evidence)} – {item.reason}")
    if not chosen:
        screen.line("  none")
    if asked_for := [item for item in context.items if item.found and item.include_mode == "agent"]:
        screen.line(f"Asked for by the model ({len(asked_for)}):", "bold")
        for item in asked_for:
            screen.line(f"  {item.ref} – {item.reason}")
    draw_candidates(screen, context.candidates)
    draw_degraded(screen, context.degraded)


def draw_rows(screen: Screen, rows: Sequence[ContextRow]) -> None:
    """Print items as `001 • name [Badge]`, with their tokens and a note."""
    for row in rows:
        line = item_line(row.label, row.name, row.mode, row.badge)
        if row.tokens:
            line.append(f" {counted(row.tokens, 'token')}", "dim")
        if row.note:
            line.append(f" – {visible(row.note)}", "yellow")
        screen.line(line)
    if not rows:
        screen.line("  none", "dim")


def item_line(before: str, name: str, mode: IncludeMode, badge: str) -> "Text":
    """Return `001 • name [Badge]`, the badge in the colour of its mode."""
    line = styled(f"  {before} • {name} ")
    return line.append(f"[{badge}]", BADGE_STYLES[mode])


def draw_candidates(screen: Screen, candidates: Sequence[Candidate]) -> None:
    """Print what could have been included and was not."""
    screen.line(f"Not included ({len(candidates)}):", "bold")
    for candidate in candidates:
        screen.line(f"  {candidate.ref}{_scored(candidate.evidence)} – {candidate.reason}")
    if not candidates:
        screen.line("  none", "dim")


def draw_degraded(screen: Screen, notes: Iterable[str]) -> None:
    """Print what did not work as it should."""
    for note in notes:
        screen.line(f"Degraded: {note}", "yellow")


def draw_request(screen: Screen, request: Request) -> None:
    """Print messages and tools exactly as the model gets them."""
    # Not at the top: the tokenizer takes a while to load.
    from windowpane.text.tokens import message_tokens

    for message in request.messages:
        named = f" {message.name}" if message.name not in ("", message.part) else ""
        called = f", answers {message.tool_call_id}" if message.tool_call_id else ""
        screen.line(
            f"─── {message.role} ({message.part}{named}{called}, {counted(message_tokens(message), 'token')})", "bold"
        )
        screen.write(message.content)
        screen.line()
        for call in message.tool_calls:
            screen.line(f"calls {call.offered_name} as {call.id}: {call.arguments}")
    for tool in request.tools:
        screen.line(f"─── tool {tool.offered_name} ({tool.ref})", "bold")
        screen.write(tool.description)
        screen.line()


def budget_text(budget: Budget) -> str:
    """Return the budget in one line."""
    source = f" (window: {budget.window_source})" if budget.window_source else ""
    return (
        f"{budget.used_tokens:,} of {budget.window_tokens:,} tokens used, "
        f"{budget.reply_tokens:,} reserved for the reply, {budget.room_tokens:,} left{source}"
    )


def _part_text(part: ContextPartRow) -> str:
    several = f" in {part.count} messages" if part.count > 1 else ""
    missed = f", {part.left_out} left out" if part.left_out else ""
    reasons = f" – {'; '.join(part.reasons)}" if part.reasons else ""
    return f"{part.kind.replace('_', ' ')}: {counted(part.tokens, 'token')}{several}{missed}{reasons}"


def _scored(evidence: Evidence | None) -> str:
    return f" {evidence.score:.2f}" if evidence else ""
