"""`windowpane chat`: a conversation in the terminal, or one answer for a script."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from windowpane.agents.base import Agent
from windowpane.cli.chat.conversation import Conversation, Ending, answer_alone, ask_in_terminal
from windowpane.cli.chat.slash import is_command, obey
from windowpane.cli.chat.thread import open_thread
from windowpane.cli.commands.inspect.context import recorded_request
from windowpane.cli.errors import in_one_line
from windowpane.cli.example import ensure_agent
from windowpane.cli.lookup import find_session
from windowpane.cli.render_request import budget_text
from windowpane.cli.render_session import draw_message
from windowpane.cli.terminal import Screen, counted
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError, WindowpaneError
from windowpane.insight.view import summary
from windowpane.settings import Settings

PROMPT = "you> "
HISTORY_FILE = "chat_history"
HISTORY_LINES = 1000
LATEST_SHOWN = 4
"""How many messages of a resumed session are shown again."""
PROBLEMS_SHOWN = 3


def chat(
    settings: Settings, *, session: str | None, agent: str | None, model: str | None, message: str | None, yes: bool
) -> int:
    """Talk. Return 0, or 1 when a single answer failed.

    Raises:
        SessionNotFoundError: there is no such session to go on with.
        InvalidInputError: an agent is named for a session that has one.
    """
    if session is not None and agent is not None:
        raise InvalidInputError("a session has its agent already; leave --agent or the session out")
    alone = message is not None or not sys.stdin.isatty()
    text = _piped() if message is None and alone else message
    screen = Screen(remarks_aside=alone)
    if session is None:
        ensure_agent(settings, screen)
    with open_thread(settings) as thread:
        begun = thread.wait(partial(_begin, thread.engine, session, agent, model))
        _tell_what_is_unusable(thread.wait(partial(_agent_of, thread.engine, begun)), screen)
        if text is not None:
            return _answer_once(Conversation(thread, screen, begun, partial(answer_alone, screen, yes)), text)
        with _line_history(settings.data / HISTORY_FILE):
            _talk(Conversation(thread, screen, begun, partial(ask_in_terminal, screen)), resumed=session is not None)
    return 0


async def _begin(engine: Engine, session: str | None, agent: str | None, model: str | None) -> SessionId:
    """Return the session to talk in, with the model that was asked for."""
    changes = {"model": model} if model is not None else {}
    if model is not None:
        engine.models.open(model)
    if session is None:
        return (await engine.create_session(agent, settings=changes)).id
    return (await engine.update_session(await find_session(engine, session), changes)).id


async def _agent_of(engine: Engine, session_id: SessionId) -> Agent:
    return engine.agents.current((await engine.session(session_id)).agent)


def _tell_what_is_unusable(agent: Agent, screen: Screen) -> None:
    """Name the files that the agent goes without; the one that it cannot go without stops the turn anyway."""
    for problem in agent.problems[:PROBLEMS_SHOWN]:
        line = f":{problem.line}" if problem.line else ""
        screen.remark(f"not used: {agent.folder}/{problem.file}{line}: {problem.reason}", "yellow")
    if len(agent.problems) > PROBLEMS_SHOWN:
        more = len(agent.problems) - PROBLEMS_SHOWN
        screen.remark(f"{counted(more, 'more problem')}: windowpane doctor shows all", "yellow")


def _piped() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"what was piped in is not UTF-8 text at byte {error.start}") from None


def _answer_once(conversation: Conversation, text: str) -> int:
    try:
        ending = conversation.send(text)
    except WindowpaneError:
        _drop_unused(conversation)
        raise
    _draw_footer(conversation, ending)
    conversation.screen.remark(f"windowpane context {conversation.session_id} shows the rest")
    return 0 if ending.outcome == "completed" else 1


def _talk(conversation: Conversation, *, resumed: bool) -> None:
    _greet(conversation, resumed=resumed)
    try:
        _decide_what_waits(conversation)
        while True:
            line = input(PROMPT)
            if not line.strip():
                continue
            try:
                if not is_command(line):
                    _draw_footer(conversation, conversation.send(line))
                elif not obey(conversation, line):
                    break
            except WindowpaneError as error:
                conversation.screen.fail(in_one_line(error))
    except (EOFError, KeyboardInterrupt):
        conversation.screen.line()
    _part(conversation, resumed=resumed)


def _greet(conversation: Conversation, *, resumed: bool) -> None:
    engine, screen = conversation.thread.engine, conversation.screen
    state = conversation.thread.wait(partial(engine.session, conversation.session_id))
    screen.remark(f"agent {state.agent}, session {state.id}, {counted(len(state.context_items), 'item')}")
    if resumed:
        messages = conversation.thread.wait(partial(engine.messages, state.id, limit=LATEST_SHOWN))
        for message in messages:
            draw_message(screen, message)
        screen.line()
    screen.remark("Type a message, or /help. Ctrl-C stops an answer, Ctrl-D leaves.")


def _decide_what_waits(conversation: Conversation) -> None:
    """Ask about tool calls that waited when the session was left."""
    state = conversation.thread.wait(partial(conversation.thread.engine.session, conversation.session_id))
    if state.open_turn is None or not state.open_turn.undecided:
        return
    conversation.screen.remark(f"Turn {state.open_turn.turn} waits for your decision.", "yellow")
    try:
        _draw_footer(conversation, conversation.decide(state.open_turn.undecided))
    except WindowpaneError as error:
        conversation.screen.fail(in_one_line(error))


def _draw_footer(conversation: Conversation, ending: Ending) -> None:
    """Say in one line what the answer was made from."""
    if ending.outcome is None:
        return
    engine = conversation.thread.engine
    request = conversation.thread.wait(partial(recorded_request, engine, conversation.session_id, None))
    if request is not None:
        conversation.screen.remark(f"[{summary(request.context)} · {budget_text(request.context.budget)}]")


def _part(conversation: Conversation, *, resumed: bool) -> None:
    screen = conversation.screen
    if not resumed and _drop_unused(conversation):
        screen.remark("Nothing was said, so no session was kept.")
        return
    state = conversation.thread.wait(partial(conversation.thread.engine.session, conversation.session_id))
    if state.open_turn is not None and state.open_turn.undecided:
        screen.remark("A tool call still waits for your decision.", "yellow")
    screen.remark(f"windowpane chat {conversation.session_id} goes on from here")


def _drop_unused(conversation: Conversation) -> bool:
    """Delete a session in which nothing was ever said, and tell whether it was one."""
    engine = conversation.thread.engine
    state = conversation.thread.wait(partial(engine.session, conversation.session_id))
    if state.message_count or state.turn_count:
        return False
    conversation.thread.wait(partial(engine.delete_session, state.id))
    return True


@contextmanager
def _line_history(file: Path) -> Generator[None]:
    """Let the line editor remember what was typed in earlier conversations."""
    try:
        import readline
    except ImportError:
        # Some Pythons are built without it; lines can be typed all the same.
        yield
        return
    try:
        readline.read_history_file(file)
    except OSError:
        readline.clear_history()
    readline.set_history_length(HISTORY_LINES)
    try:
        yield
    finally:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)
            file.chmod(0o600)
        except OSError:
            # A history that cannot be kept is no reason to end a conversation with an error.
            pass
