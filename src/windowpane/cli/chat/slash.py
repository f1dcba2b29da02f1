"""The commands of a conversation, which begin with a slash."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from windowpane.api.agents import ItemView
from windowpane.api.sessions import SessionView
from windowpane.cli.chat.conversation import Conversation, read_from_disk
from windowpane.cli.chat.setting import SHORT_NAMES, change_of, shown
from windowpane.cli.lookup import all_items, find_item, find_request, ref_of
from windowpane.cli.render_request import draw_context, draw_why, item_line
from windowpane.cli.render_session import draw_sessions
from windowpane.context.items import IncludeMode, ItemRef, ItemType
from windowpane.context.request import Request
from windowpane.errors import InvalidInputError
from windowpane.insight.view import badge, changes_since, label

PASSED_ON = ("tool",)
"""These are messages: `/tool name {json}` asks the built-in model for a tool call."""

SETTLE_S = 2.0
"""How long a list of items waits for tool servers to connect."""
MODELS_SHOWN = 40
SESSIONS_SHOWN = 10
KINDS: tuple[ItemType, ...] = ("rule", "reference", "tool")
LEAST_IMPORTANT = 999
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)

Run = Callable[[Conversation, str], Awaitable[None]]
"""Runs a command, given what follows its name, in the thread of the pane."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command: what it takes, what it does."""

    takes: str
    help: str
    run: Run | None = None


def is_command(line: str) -> bool:
    """Tell whether a line is a command. A path such as /etc/hosts is not."""
    found = _COMMAND.fullmatch(line.rstrip())
    return found is not None and found[1] not in PASSED_ON


def obey(conversation: Conversation, line: str) -> bool:
    """Run a command, and tell whether the conversation continues.

    Raises:
        WindowpaneError: it cannot be done.
    """
    found = _COMMAND.fullmatch(line.rstrip())
    name, rest = (found[1], (found[2] or "").strip()) if found else ("", "")
    command = COMMANDS.get(name)
    if command is None:
        raise InvalidInputError(f"no command /{name}; /help lists the commands, and a space before it sends it as text")
    if command.run is None:
        return False
    conversation.thread.wait(partial(command.run, conversation, rest))
    return True


async def _context(conversation: Conversation, rest: str) -> None:
    request = await _request(conversation, rest)
    if request is None:
        draw_context(conversation.screen, None)
        return
    now = {ref: item.hash for ref, item in (await _items(conversation)).items()}
    now |= {own.ref: own.blob for own in (await _session(conversation)).own_references}
    draw_context(conversation.screen, request.context, changes_since(request.context, now))


async def _why(conversation: Conversation, rest: str) -> None:
    request = await _request(conversation, rest)
    draw_why(conversation.screen, request.context if request else None)


async def _add(conversation: Conversation, rest: str) -> None:
    ref = find_item(rest, await _refs(conversation))
    change = await conversation.pane.sessions.add_item(conversation.session_id, ref)
    conversation.screen.line(f"Added {ref}." if change.changed else f"{ref} is already in this session.")


async def _attach(conversation: Conversation, rest: str) -> None:
    if not rest:
        raise InvalidInputError("name a file: /attach FILE")
    conversation.files.append(read_from_disk(Path(rest)))
    names = ", ".join(file.name for file in conversation.files)
    conversation.screen.line(f"The next message brings {names}.")


async def _reference(conversation: Conversation, rest: str) -> None:
    if not rest:
        raise InvalidInputError("name a file: /reference FILE")
    before = {own.name for own in (await _session(conversation)).own_references}
    made = await conversation.pane.sessions.add_reference(conversation.session_id, read_from_disk(Path(rest)))
    new = [own for own in made.references if own.name not in before]
    for own in new:
        conversation.screen.line(f"Made {own.ref}, {own.tokens:,} tokens. Messages that need it select it.")
    if not new:
        conversation.screen.line("This file is a reference of this session already.")


async def _forget(conversation: Conversation, rest: str) -> None:
    ref = find_item(rest, (own.ref for own in (await _session(conversation)).own_references))
    gone = await conversation.pane.sessions.remove_reference(conversation.session_id, ref.name)
    conversation.screen.line(f"Removed {ref}.")
    for remark in gone.remains:
        conversation.screen.line(f"Note: {remark}.")


async def _remove(conversation: Conversation, rest: str) -> None:
    held = await conversation.pane.sessions.items(conversation.session_id)
    ref = find_item(rest, (item.ref for item in held))
    change = await conversation.pane.sessions.remove_item(conversation.session_id, ref)
    conversation.screen.line(f"Removed {ref}." if change.changed else f"{ref} is not in this session.")


async def _never(conversation: Conversation, rest: str) -> None:
    ref = find_item(rest, await _refs(conversation))
    change = await conversation.pane.sessions.exclude_item(conversation.session_id, ref)
    conversation.screen.line(f"{ref} will not be used in this session." if change.changed else f"{ref} is excluded.")


async def _readmit(conversation: Conversation, rest: str) -> None:
    ref = find_item(rest, (await _session(conversation)).excluded)
    await conversation.pane.sessions.readmit_item(conversation.session_id, ref)
    conversation.screen.line(f"{ref} may be selected again.")


async def _list_items(conversation: Conversation, rest: str) -> None:
    screen = conversation.screen
    items = await _items(conversation)
    session = await _session(conversation)
    modes: dict[ItemRef, IncludeMode] = {item.ref: item.mode for item in session.items}
    screen.line(f"In this session ({len(modes)}):", "bold")
    for ref in sorted(modes, key=lambda ref: _order(ref, items.get(ref))):
        line = item_line(label(ref, _priority(items.get(ref))), ref.name, modes[ref], badge(modes[ref]))
        known = ref in items or any(own.ref == ref for own in session.own_references)
        screen.line(line if known else line.append(" – no longer available", "yellow"))
    if session.own_references:
        screen.line(f"Made from files ({len(session.own_references)}), this session only:", "bold")
    for own in session.own_references:
        line = item_line(label(own.ref, None), own.name, "agent", badge("agent"))
        screen.line(line.append(f" {own.ref} – {own.file}{_kept_out(own.ref, session)}", "dim"))
    others = sorted((ref for ref in items if ref not in modes), key=lambda ref: _order(ref, items[ref]))
    screen.line(f"Not in this session ({len(others)}), use `/add` to add one:", "bold")
    for ref in others:
        line = item_line(label(ref, _priority(items[ref])), ref.name, items[ref].include, badge(items[ref].include))
        screen.line(line.append(f" {ref}{_kept_out(ref, session)}", "dim"))


async def _model(conversation: Conversation, rest: str) -> None:
    pane, screen = conversation.pane, conversation.screen
    if rest:
        await pane.models.check(rest)
        await pane.sessions.update(conversation.session_id, {"model": rest})
        screen.line(f"The next message will use {rest}.")
        return
    session = await _session(conversation)
    now = session.settings.model or (await pane.agents.get(session.agent)).settings.model
    known = await pane.models.list()
    screen.line(f"The model is {now}. Use `/model NAME` to change it, for example:")
    for name in known[:MODELS_SHOWN]:
        screen.line(f"  {name}")
    if len(known) > MODELS_SHOWN:
        screen.line(f"  and {len(known) - MODELS_SHOWN} more")


async def _set(conversation: Conversation, rest: str) -> None:
    pane, screen = conversation.pane, conversation.screen
    settings = (await _session(conversation)).settings
    if not rest:
        screen.line("Settings of this session; those that are not listed are the agent's:")
        for name, value in shown(settings):
            screen.line(f"  {name} = {value}")
        short = ", ".join(f"{short} for {name}" for short, name in SHORT_NAMES.items())
        screen.line(f"Use `/set NAME VALUE` to change one, `/set NAME default` for the agent's. Short names: {short}.")
        return
    name, value = change_of(settings, rest)
    changed = await pane.sessions.update(conversation.session_id, {name: value})
    now = dict(shown(changed.settings))
    screen.line(f"{name} is now {now[name]}." if name in now else f"{name} is now the agent's.")


async def _sessions(conversation: Conversation, rest: str) -> None:
    draw_sessions(conversation.screen, (await conversation.pane.sessions.list(limit=SESSIONS_SHOWN)).sessions)


async def _new(conversation: Conversation, rest: str) -> None:
    before = await _session(conversation)
    kept = {"model": before.settings.model} if before.settings.model else {}
    begun = await conversation.pane.sessions.create(before.agent, settings=kept)
    conversation.session_id = begun.id
    conversation.screen.line(f"This is a new session, {begun.id}. The previous session is {before.id}.")


async def _help(conversation: Conversation, rest: str) -> None:
    for name, command in COMMANDS.items():
        conversation.screen.line(f"  {f'/{name} {command.takes}'.rstrip():<48} {command.help}")
    conversation.screen.line("  @rule:NAME or @reference:NAME in a message       adds that item to the session")
    conversation.screen.line("Anything else is sent as a message. Ctrl-C cancels an answer, Ctrl-D exits.")


COMMANDS: Mapping[str, Command] = {
    "context": Command("[TURN]", "show what the model got in the last turn, or in another", _context),
    "why": Command("[TURN]", "show what was selected and what was not, with scores", _why),
    "items": Command("", "list the items of this session, and what else is available", _list_items),
    "attach": Command("FILE", "send a file with the next message", _attach),
    "reference": Command("FILE", "make a reference of this session from a file", _reference),
    "forget": Command("reference:NAME", "remove a reference that was made from a file", _forget),
    "add": Command("rule:NAME | reference:NAME | SERVER:TOOL", "add an item to this session", _add),
    "remove": Command("rule:NAME | reference:NAME | SERVER:TOOL", "remove an item from this session", _remove),
    "never": Command("rule:NAME | reference:NAME | SERVER:TOOL", "never use an item in this session", _never),
    "readmit": Command("rule:NAME | reference:NAME | SERVER:TOOL", "let an excluded item be selected again", _readmit),
    "model": Command("[PROVIDER:MODEL]", "use another model, or list those that are set up", _model),
    "set": Command("[NAME VALUE]", "change a setting of this session, or list them", _set),
    "sessions": Command("", "list recent sessions", _sessions),
    "new": Command("", "start a new session with the same agent", _new),
    "help": Command("", "show this list", _help),
    "quit": Command("", "exit; the session is kept"),
}


async def _request(conversation: Conversation, rest: str) -> Request | None:
    if rest and not rest.isdecimal():
        raise InvalidInputError(f"{rest!r} is not a turn number")
    return await find_request(conversation.pane, await _session(conversation), int(rest) if rest else None)


async def _session(conversation: Conversation) -> SessionView:
    return await conversation.pane.sessions.get(conversation.session_id)


async def _items(conversation: Conversation) -> dict[ItemRef, ItemView]:
    """Return everything that the agent has, when its tool servers have had a moment to connect."""
    agent = (await _session(conversation)).agent
    await conversation.pane.agents.servers(agent, settle_s=SETTLE_S)
    return {ref_of(view): view for view in await all_items(conversation.pane, agent)}


async def _refs(conversation: Conversation) -> tuple[ItemRef, ...]:
    """Return the names of everything that the session can have: of the agent, and made from files."""
    return (*await _items(conversation), *(own.ref for own in (await _session(conversation)).own_references))


def _kept_out(ref: ItemRef, session: SessionView) -> str:
    return " – never in this session" if ref in session.excluded else ""


def _priority(item: ItemView | None) -> int | None:
    return None if item is None else item.priority


def _order(ref: ItemRef, item: ItemView | None) -> tuple[int, str, int, str]:
    priority = _priority(item)
    return (KINDS.index(ref.type), ref.server or "", LEAST_IMPORTANT if priority is None else priority, ref.name)
