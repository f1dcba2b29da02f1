"""What would make an agent's context better, with the evidence, and how to do it and undo it.

Suggestions come from counts of use over time (`values.py`) and from how the agent is now. Each says what was
counted, what it would save, and names the settings that change; applying one changes those in the agent's files and
gives back the settings that undo it.

That no trace of an item was found does not show that it is of no use: what only shapes an answer leaves none. Rules do
that for a living, so one that is always there is never suggested for removal because no trace of it was found. Of a
reference, only requests count in which its words and its meaning were both looked for; of a tool, its calls.
"""

from collections.abc import Iterator, Mapping, Sequence

from windowpane.agents.base import Agent
from windowpane.agents.edit import FileText, ToolChange, change_item, change_server, item_text, server_text
from windowpane.agents.frontmatter import read_document
from windowpane.agents.tree import value_of
from windowpane.api.analytics import ItemRow
from windowpane.api.suggestions import Applied, Edit, Kind, Setting, Suggestion
from windowpane.context.items import Item, ItemRef, Tool
from windowpane.errors import InvalidInputError, MissingFileError

ENOUGH_REQUESTS = 20
"""So many requests an item must have been in before anything is said about its use."""

ENOUGH_SELECTIONS = 50
"""So many times an item must have been a candidate before it counts as one that never wins."""

SELDOM = 0.1
"""Used in at most this share of the requests is seldom."""

NEARLY_ALWAYS = 0.8
OFTEN_BY_HAND = 3
LONG_TOKENS = 400
"""From this size on, an item is worth shortening."""

NOTHING_FOUND = "neither its words nor its meaning were found in the answers"
NO_PROOF = "That no trace was found does not prove that it is of no use"


def suggestions(agent: Agent, items: Sequence[Item], rows: Sequence[ItemRow], turns: int) -> tuple[Suggestion, ...]:
    """Return what could be better about an agent, what saves the most first.

    `items` is everything that the agent has now, tools too; `rows` is what was counted about them in `turns` turns.
    """
    counted = {row.ref: row for row in rows if row.agent == agent.name}
    found = [
        suggestion
        for item in items
        if (row := counted.get(item.ref)) is not None and (isinstance(item, Tool) or item.enabled)
        for suggestion in _about(agent, item, row, turns)
    ]
    return tuple(sorted(found, key=lambda s: (-s.saves_tokens, s.ref.sort_key)))


def apply(agent: Agent, edit: Edit, *, revision: str) -> Applied:
    """Change an item's settings in the agent's files.

    Raises:
        InvalidInputError: there is no such setting, or the item cannot have it.
        UnknownItemError: the agent has no such item.
        MissingFileError: no file of the agent describes the tool's server.
        StaleRevisionError: the file is not the one of `revision`.
    """
    _check(edit)
    if edit.ref.type == "tool":
        return _applied_to_tool(agent, edit, revision)
    before = _written(item_text(agent, edit.ref), edit)
    written = change_item(agent, edit.ref, edit.settings, text=None, revision=revision)
    undo = Edit(ref=edit.ref, settings=before)
    return Applied(agent=agent.name, ref=edit.ref, file=written.file, revision=written.revision, undo=undo)


def _about(agent: Agent, item: Item, row: ItemRow, turns: int) -> Iterator[Suggestion]:
    always = item.include == "always"
    each = row.tokens // row.included if row.included else 0
    rule, tool = item.ref.type == "rule", isinstance(item, Tool)
    used, compared = row.used + row.probably, row.included if tool else row.used + row.probably + row.no_trace
    seldom = compared >= ENOUGH_REQUESTS and used <= SELDOM * compared
    spared = row.unused_tokens if tool else row.no_trace_tokens
    proof = "" if tool else f" {NO_PROOF}."
    if seldom and always and not rule:
        counted = f"In {compared:,} requests, {_times(used, 'call' if tool else 'trace')} of it in the answers"
        why = f"{counted}, at {each:,} tokens each time. With include mode agent, it is sent only when needed.{proof}"
        yield _suggestion(agent, "demote", row, why, spared, {"include": "agent"})
    elif seldom and item.include == "agent" and row.selected >= ENOUGH_REQUESTS and not rule and not used:
        outcome = "it was never called" if tool else NOTHING_FOUND
        why = f"The selection took it {row.selected:,} times and {outcome}.{proof}"
        change: Mapping[str, Setting] = {"include": "manual"} if tool else {"enabled": False}
        yield _suggestion(agent, "remove", row, why, spared, change)
    if each >= LONG_TOKENS and row.included >= ENOUGH_REQUESTS and not isinstance(item, Tool):
        why = f"It takes {each:,} tokens in each of {row.included:,} requests. Half as long it would save half of that."
        if rule and not row.used:
            why += f" {NO_PROOF}: a rule that shapes the answer leaves none. It is not suggested to remove it."
        yield _suggestion(agent, "shorten", row, why, row.tokens // 2, None)
    if item.include == "agent" and row.considered >= ENOUGH_SELECTIONS and not row.selected:
        best = max((step.low for step in row.scores), default=0.0)
        why = (
            f"It was a candidate {row.considered:,} times and never selected; its scores stayed below {best + 0.1:.1f}."
            " Describe in its own words what people ask for, or take it out."
        )
        if row.added_by_hand < OFTEN_BY_HAND:
            change = {"include": "manual"} if isinstance(item, Tool) else {"enabled": False}
            yield _suggestion(agent, "remove", row, why, 0, change)
    yield from _promotions(agent, item, row, turns)


def _promotions(agent: Agent, item: Item, row: ItemRow, turns: int) -> Iterator[Suggestion]:
    each = row.tokens // row.included if row.included else 0
    if item.include == "manual" and row.added_by_hand >= OFTEN_BY_HAND:
        why = f"It was added by hand {row.added_by_hand:,} times, right after an answer. Let the selection offer it."
        yield _suggestion(agent, "promote", row, why, 0, {"include": "agent"})
    if item.include != "agent" or turns < ENOUGH_REQUESTS:
        return
    by_hand = row.added_by_hand >= max(OFTEN_BY_HAND, row.selected)
    everywhere = row.included >= NEARLY_ALWAYS * turns and (row.used_share or 0.0) >= NEARLY_ALWAYS
    if by_hand or everywhere:
        why = (
            f"It was added by hand {row.added_by_hand:,} times and selected {row.selected:,} times: "
            "the selection does not see that it is needed."
            if by_hand
            else f"It was in {row.included:,} of {turns:,} requests and used in {row.used + row.probably:,}. "
            "Always there, it stands where prompt caches keep it."
        )
        missing = max(turns - row.included, 0)
        yield _suggestion(agent, "promote", row, why, -each * missing, {"include": "always"})


def _suggestion(
    agent: Agent, kind: Kind, row: ItemRow, why: str, saves_tokens: int, change: Mapping[str, Setting] | None
) -> Suggestion:
    file = _file(agent, row.ref)
    return Suggestion(
        kind=kind,
        agent=agent.name,
        ref=row.ref,
        why=why,
        saves_tokens=saves_tokens,
        saves_tokens_per_request=saves_tokens // row.included if row.included else 0,
        edit=Edit(ref=row.ref, settings=change) if change is not None and file is not None else None,
        revision=file.revision if file else None,
        row=row,
    )


def _file(agent: Agent, ref: ItemRef) -> FileText | None:
    """Return the file in which an item's settings stand; None for a tool that no file describes."""
    try:
        return server_text(agent, ref.server) if ref.server is not None else item_text(agent, ref)
    except MissingFileError:
        return None


def _times(count: int, noun: str) -> str:
    return (
        f"there was no {noun}"
        if not count
        else f"there was 1 {noun}"
        if count == 1
        else f"there were {count:,} {noun}s"
    )


def _check(edit: Edit) -> None:
    known = {"include"} if edit.ref.type == "tool" else {"include", "enabled"}
    unknown = sorted(set(edit.settings) - known)
    if unknown or not edit.settings:
        named = f"{', '.join(unknown)} cannot be set" if unknown else "nothing is to be set"
        raise InvalidInputError(f"{named} here; available: {', '.join(sorted(known))}")
    include = edit.settings.get("include")
    if include not in (None, "always", "manual", "agent"):
        raise InvalidInputError(f"include must be always, manual or agent, not {include!r}")
    if not isinstance(edit.settings.get("enabled", None), bool | None):
        raise InvalidInputError("enabled must be true or false")


def _written(file: FileText, edit: Edit) -> dict[str, Setting]:
    """Return the settings as the file has them; None for one that it does not name."""
    front = value_of(read_document(file.text).front)
    return {name: front.get(name) for name in edit.settings}


def _applied_to_tool(agent: Agent, edit: Edit, revision: str) -> Applied:
    server, name = edit.ref.server or "", edit.ref.name
    entry = next((entry for entry in agent.servers if entry.name == server), None)
    if entry is None:
        raise MissingFileError(server, "the agent's files describe no such tool server")
    include = edit.settings["include"]
    own = entry.body.get("tool_permission", {}).get(name)
    change = ToolChange(include=include, permission=own)  # pyright: ignore[reportArgumentType] – checked above
    written = change_server(agent, server, {}, {name: change}, revision=revision)
    undo = Edit(ref=edit.ref, settings={"include": entry.body.get("tool_include", {}).get(name)})
    return Applied(agent=agent.name, ref=edit.ref, file=written.file, revision=written.revision, undo=undo)
