"""What can be typed in a conversation beside messages: commands that begin with a slash."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from windowpane.cli.chat.conversation import Conversation
from windowpane.cli.commands.inspect.context import recorded_request
from windowpane.cli.lookup import find_item
from windowpane.cli.render_request import draw_context, draw_why, item_line
from windowpane.cli.render_session import draw_sessions
from windowpane.context.items import IncludeMode, Item, ItemRef, ItemType, Reference, Rule
from windowpane.context.request import Request
from windowpane.context.session import SessionState
from windowpane.errors import InvalidInputError
from windowpane.insight.view import badge, changes_since, label

PASSED_ON = ("tool",)
"""Looks like a command and is a message: `/tool name {json}` asks the built-in model for a tool call."""

SETTLE_S = 2.0
MODELS_SHOWN = 40
SESSIONS_SHOWN = 10
KINDS: tuple[ItemType, ...] = ("rule", "reference", "tool")
LEAST_IMPORTANT = 999
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)

Run = Callable[[Conversation, str], None]


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
    """Do what a command says, and tell whether the conversation goes on.

    Raises:
        WindowpaneError: it cannot be done.
    """
    found = _COMMAND.fullmatch(line.rstrip())
    name, rest = (found[1], (found[2] or "").strip()) if found else ("", "")
    command = COMMANDS.get(name)
    if command is None:
        raise InvalidInputError(
            f"there is no command /{name}; /help lists them, and a space before it sends it as text"
        )
    if command.run is None:
        return False
    command.run(conversation, rest)
    return True


def _context(conversation: Conversation, rest: str) -> None:
    request = _request(conversation, rest)
    now = _items(conversation) if request else ()
    changes = changes_since(request.context, now) if request else None
    draw_context(conversation.screen, request.context if request else None, changes)


def _why(conversation: Conversation, rest: str) -> None:
    request = _request(conversation, rest)
    draw_why(conversation.screen, request.context if request else None)


def _add(conversation: Conversation, rest: str) -> None:
    ref = find_item(rest, (item.ref for item in _items(conversation)))
    changed = conversation.thread.wait(partial(conversation.thread.engine.add_item, conversation.session_id, ref))
    conversation.screen.line(f"Added {ref}." if changed.recorded else f"{ref} is in this session already.")


def _remove(conversation: Conversation, rest: str) -> None:
    ref = find_item(rest, (item.ref for item in _state(conversation).context_items))
    changed = conversation.thread.wait(partial(conversation.thread.engine.remove_item, conversation.session_id, ref))
    conversation.screen.line(f"Removed {ref}." if changed.recorded else f"{ref} is not in this session.")


def _list_items(conversation: Conversation, rest: str) -> None:
    screen = conversation.screen
    items = {item.ref: item for item in _items(conversation)}
    modes: dict[ItemRef, IncludeMode] = {held.ref: held.mode for held in _state(conversation).context_items}
    screen.line(f"In this session ({len(modes)}):", "bold")
    for ref in sorted(modes, key=lambda ref: _order(ref, items.get(ref))):
        line = item_line(label(ref, _priority(items.get(ref))), ref.name, modes[ref], badge(modes[ref]))
        screen.line(line if ref in items else line.append(" – the agent does not have it now", "yellow"))
    others = sorted((item for ref, item in items.items() if ref not in modes), key=lambda item: _order(item.ref, item))
    screen.line(f"Not in this session ({len(others)}), `/add` takes one in:", "bold")
    for item in others:
        line = item_line(label(item.ref, _priority(item)), item.name, item.include, badge(item.include))
        screen.line(line.append(f" {item.ref}", "dim"))


def _model(conversation: Conversation, rest: str) -> None:
    engine, screen = conversation.thread.engine, conversation.screen
    if rest:
        conversation.thread.wait(partial(_choose_model, conversation, rest))
        screen.line(f"The model is {rest} from the next message on.")
        return
    state = _state(conversation)
    now = state.settings.model or engine.agents.current(state.agent).settings.model
    known = engine.models.known()
    screen.line(f"The model is {now}. `/model NAME` takes another, such as:")
    for name in known[:MODELS_SHOWN]:
        screen.line(f"  {name}")
    if len(known) > MODELS_SHOWN:
        screen.line(f"  and {len(known) - MODELS_SHOWN} more")


def _sessions(conversation: Conversation, rest: str) -> None:
    found = conversation.thread.wait(partial(conversation.thread.engine.sessions, limit=SESSIONS_SHOWN))
    draw_sessions(conversation.screen, found.sessions)


def _new(conversation: Conversation, rest: str) -> None:
    state = _state(conversation)
    kept = {"model": state.settings.model} if state.settings.model else {}
    begun = conversation.thread.wait(partial(conversation.thread.engine.create_session, state.agent, settings=kept))
    conversation.session_id = begun.id
    conversation.screen.line(f"This is a new session, {begun.id}. The one before is {state.id}.")


def _help(conversation: Conversation, rest: str) -> None:
    for name, command in COMMANDS.items():
        conversation.screen.line(f"  {f'/{name} {command.takes}'.rstrip():<48} {command.help}")
    conversation.screen.line("  @rule:NAME or @reference:NAME in a message       adds that item to the session")
    conversation.screen.line("Anything else is sent. Ctrl-C stops an answer, Ctrl-D leaves.")


COMMANDS: Mapping[str, Command] = {
    "context": Command("[TURN]", "what the model was given in the last turn, or in another", _context),
    "why": Command("[TURN]", "what was selected and what was not, with scores", _why),
    "items": Command("", "what is in this session, and what could be", _list_items),
    "add": Command("rule:NAME | reference:NAME | SERVER:TOOL", "take an item into this session", _add),
    "remove": Command("rule:NAME | reference:NAME | SERVER:TOOL", "take an item out of this session", _remove),
    "model": Command("[PROVIDER:MODEL]", "use another model, or list those that are set up", _model),
    "sessions": Command("", "the sessions that were used last", _sessions),
    "new": Command("", "begin a new session with the same agent", _new),
    "help": Command("", "this list", _help),
    "quit": Command("", "leave; the session is kept"),
}


def _request(conversation: Conversation, rest: str) -> Request | None:
    if rest and not rest.isdecimal():
        raise InvalidInputError(f"{rest!r} is not the number of a turn")
    turn = int(rest) if rest else None
    return conversation.thread.wait(
        partial(recorded_request, conversation.thread.engine, conversation.session_id, turn)
    )


def _state(conversation: Conversation) -> SessionState:
    return conversation.thread.wait(partial(conversation.thread.engine.session, conversation.session_id))


def _items(conversation: Conversation) -> tuple[Item, ...]:
    """Return everything the agent has, when its tool servers have had a moment to connect."""
    engine, agent = conversation.thread.engine, _state(conversation).agent
    conversation.thread.wait(partial(engine.servers, agent, settle_s=SETTLE_S))
    return conversation.thread.wait(partial(engine.items, agent))


async def _choose_model(conversation: Conversation, name: str) -> None:
    engine = conversation.thread.engine
    engine.models.open(name)
    await engine.update_session(conversation.session_id, {"model": name})


def _priority(item: Item | None) -> int | None:
    return item.priority if isinstance(item, Rule | Reference) else None


def _order(ref: ItemRef, item: Item | None) -> tuple[int, str, int, str]:
    priority = _priority(item)
    return (KINDS.index(ref.type), ref.server or "", LEAST_IMPORTANT if priority is None else priority, ref.name)
