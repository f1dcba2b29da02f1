"""The conversation of `windowpane chat`, or one answer for a script."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from windowpane.api.pane import Pane
from windowpane.api.sessions import SessionView
from windowpane.cli.chat.conversation import Conversation, Ending, answer_alone, ask_in_terminal, read_from_disk
from windowpane.cli.chat.questions import decline_alone, fill_in_terminal
from windowpane.cli.chat.slash import is_command, obey
from windowpane.cli.chat.thread import open_thread
from windowpane.cli.errors import in_one_line
from windowpane.cli.example import ensure_agent
from windowpane.cli.lookup import find_request, find_session
from windowpane.cli.render_request import budget_text
from windowpane.cli.render_session import draw_message
from windowpane.cli.settings import server_url, settings
from windowpane.cli.terminal import Screen, counted
from windowpane.errors import InvalidInputError, WindowpaneError
from windowpane.insight.view import summary

PROMPT = "you> "
HISTORY_FILE = "chat_history"
HISTORY_LINES = 1000
LATEST_SHOWN = 4
"""How many messages of a resumed session are shown again."""
PROBLEMS_SHOWN = 3


def chat(
    *,
    session: str | None,
    agent: str | None,
    chosen: dict[str, str],
    message: str | None,
    attach: Sequence[Path] = (),
    yes: bool,
) -> int:
    """Talk. Return 0, or 1 when a single answer failed. `chosen` are settings that the session has from now on.

    `attach` are files that go with the first message.

    Raises:
        SessionNotFoundError: there is no such session to go on with.
        InvalidInputError: an agent is named for a session that has one, or a file cannot be read.
    """
    if session is not None and agent is not None:
        raise InvalidInputError("use a session or --agent, not both: a session already has an agent")
    alone = message is not None or not sys.stdin.isatty()
    text = _piped() if message is None and alone else message
    files = [read_from_disk(path) for path in attach]
    screen = Screen(remarks_aside=alone)
    if session is None and not server_url():
        ensure_agent(settings(), screen)
    with open_thread() as thread:
        begun = thread.wait(partial(_begin, thread.pane, session, agent, chosen))
        thread.wait(partial(_report_problems, thread.pane, begun.agent, screen))
        if text is not None:
            return _answer_once(
                Conversation(
                    thread, screen, begun.id, partial(answer_alone, screen, yes), partial(decline_alone, screen), files
                ),
                text,
            )
        with _line_history(settings().data / HISTORY_FILE):
            conversation = Conversation(
                thread, screen, begun.id, partial(ask_in_terminal, screen), partial(fill_in_terminal, screen), files
            )
            _talk(conversation, resumed=session is not None)
    return 0


async def _begin(pane: Pane, session: str | None, agent: str | None, chosen: dict[str, str]) -> SessionView:
    """Return the session to chat in, with the settings that were asked for."""
    if "model" in chosen:
        await pane.models.check(chosen["model"])
    if session is None:
        return await pane.sessions.create(agent, settings=chosen)
    found = await find_session(pane, session)
    return await pane.sessions.update(found.id, chosen) if chosen else found


async def _report_problems(pane: Pane, name: str, screen: Screen) -> None:
    """Name the files that the agent cannot use."""
    agent = await pane.agents.get(name)
    for problem in agent.problems[:PROBLEMS_SHOWN]:
        line = f":{problem.line}" if problem.line else ""
        screen.remark(f"not used: {agent.folder}/{problem.file}{line}: {problem.reason}", "yellow")
    if len(agent.problems) > PROBLEMS_SHOWN:
        more = len(agent.problems) - PROBLEMS_SHOWN
        screen.remark(f"{counted(more, 'more problem')}: see `windowpane doctor`", "yellow")


def _piped() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"the piped input is not UTF-8 text (byte {error.start})") from None


def _answer_once(conversation: Conversation, text: str) -> int:
    try:
        ending = conversation.send(text)
    except WindowpaneError:
        _drop_unused(conversation)
        raise
    _draw_footer(conversation, ending)
    conversation.screen.remark(f"Details: windowpane context {conversation.session_id}")
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
    screen, session = conversation.screen, _session(conversation)
    screen.remark(f"agent {session.agent}, session {session.id}, {counted(len(session.items), 'item')}")
    if resumed:
        page = conversation.thread.wait(partial(conversation.pane.sessions.messages, session.id, limit=LATEST_SHOWN))
        for message in page.messages:
            draw_message(screen, message)
        screen.line()
    screen.remark("Type a message, or /help. Ctrl-C cancels an answer, Ctrl-D exits.")


def _decide_what_waits(conversation: Conversation) -> None:
    """Ask about tool calls that were waiting when the session was left."""
    turn = _session(conversation).open_turn
    if turn is None or not turn.approvals:
        return
    conversation.screen.remark(f"Turn {turn.turn} waits for your decision.", "yellow")
    try:
        _draw_footer(conversation, conversation.decide(turn.approvals))
    except WindowpaneError as error:
        conversation.screen.fail(in_one_line(error))


def _draw_footer(conversation: Conversation, ending: Ending) -> None:
    """Print in one line what the answer was made from."""
    if ending.outcome is None:
        return
    request = conversation.thread.wait(partial(find_request, conversation.pane, _session(conversation), None))
    if request is not None:
        conversation.screen.remark(f"[{summary(request.context)} · {budget_text(request.context.budget)}]")


def _part(conversation: Conversation, *, resumed: bool) -> None:
    screen = conversation.screen
    if not resumed and _drop_unused(conversation):
        screen.remark("The session was empty and was deleted.")
        return
    turn = _session(conversation).open_turn
    if turn is not None and turn.approvals:
        screen.remark("A tool call still waits for your decision.", "yellow")
    screen.remark(f"Continue: windowpane chat {conversation.session_id}")


def _drop_unused(conversation: Conversation) -> bool:
    """Delete the session if it has no messages, and tell whether it was deleted."""
    session = _session(conversation)
    if session.message_count or session.last_turn:
        return False
    conversation.thread.wait(partial(conversation.pane.sessions.delete, session.id))
    return True


def _session(conversation: Conversation) -> SessionView:
    return conversation.thread.wait(partial(conversation.pane.sessions.get, conversation.session_id))


@contextmanager
def _line_history(file: Path) -> Generator[None]:
    """Load and save the history of the line editor."""
    try:
        import readline
    except ImportError:
        # Some Pythons are built without it; typing works without it.
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
            # A history that cannot be saved is no reason to end a conversation with an error.
            pass
