"""Show one turn as it happens, and ask the user about tool calls that need approval and what running tools ask.

Ctrl-C while the answer comes cancels the turn; Ctrl-C at a question about a tool call cancels it too.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from windowpane.api.pane import Pane
from windowpane.cli.chat.questions import AnswerQuestion
from windowpane.cli.chat.thread import Interrupted, PaneThread
from windowpane.cli.terminal import Screen
from windowpane.context.events import (
    ApprovalRequested,
    Delta,
    Event,
    ItemAdded,
    Live,
    ModelReplied,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    ServerArrived,
    ToolProgress,
    ToolReturned,
    TurnError,
    TurnFinished,
)
from windowpane.context.ids import SessionId
from windowpane.context.messages import Decision, NewFile, Outcome, ToolCall, ToolQuestion
from windowpane.errors import InvalidInputError, NoQuestionError, NoTurnRunningError

Ask = Callable[[ToolCall], Decision]
"""Decides about one tool call. Raises `KeyboardInterrupt` to cancel the turn, `EOFError` to leave it waiting."""

ANSWERS: dict[str, Decision] = {"o": "allow_once", "s": "allow_session", "d": "deny"}
QUESTION = "Allow it? [o]nce, for this [s]ession, [d]eny: "
RESULT_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended, or which of its tool calls wait."""

    outcome: Outcome | None = None
    error: TurnError | None = None
    waiting: tuple[ToolCall, ...] = ()


class Conversation:
    """One session in the terminal. `files` go with its next message."""

    def __init__(
        self,
        thread: PaneThread,
        screen: Screen,
        session_id: SessionId,
        ask: Ask,
        answer: AnswerQuestion,
        files: Sequence[NewFile] = (),
    ) -> None:
        self.thread = thread
        self.screen = screen
        self.session_id = session_id
        self.files = list(files)
        self._ask = ask
        self._answer = answer
        self._teller = _Teller(screen)

    @property
    def pane(self) -> Pane:
        """Return the pane, for functions that run in its thread."""
        return self.thread.pane

    def send(self, message: str) -> Ending:
        """Send a message and show everything until the turn ends.

        Raises:
            WindowpaneError: the turn could not begin.
            EOFError: there is no user to decide; the turn waits.
        """
        files, self.files = self.files, []
        return self._settle(self._follow(self.pane.turn(self.session_id, message, attachments=files)))

    def decide(self, calls: Sequence[ToolCall]) -> Ending:
        """Continue a turn that waits for decisions."""
        return self._settle(Ending(waiting=tuple(calls)))

    def cancel(self) -> None:
        """Stop the turn that is running or waiting."""
        try:
            self.thread.wait(partial(self.pane.cancel, self.session_id))
        except NoTurnRunningError:
            return

    def _settle(self, ending: Ending) -> Ending:
        while ending.waiting:
            self._teller.expect(ending.waiting)
            try:
                decisions: dict[str, Decision] = {call.id: self._ask(call) for call in ending.waiting}
            except KeyboardInterrupt:
                self.screen.remark()
                self.cancel()
                ending = Ending("cancelled")
            else:
                ending = self._follow(self.pane.approve(self.session_id, decisions))
        if ending.error is not None:
            self.screen.fail(ending.error.message)
        elif ending.outcome in ("cancelled", "interrupted"):
            self.screen.remark(f"({ending.outcome}; the answer so far is kept)", "yellow")
        return ending

    def _follow(self, live: AsyncIterator[Live]) -> Ending:
        self._teller.ending = Ending()
        with self.thread.events(live) as events:
            while (event := events.take()) is not None:
                if isinstance(event, Interrupted):
                    self.cancel()
                else:
                    self._teller.tell(event)
                    if isinstance(event, Recorded) and isinstance(event.event, QuestionAsked):
                        with events.asking():
                            self._settle_question(event.event.question)
        return self._teller.ending

    def _settle_question(self, question: ToolQuestion) -> None:
        """Answer a running tool, unless another client or the system has done so."""
        turn = self.thread.wait(partial(self.pane.sessions.get, self.session_id)).open_turn
        if turn is None or question.id not in {each.id for each in turn.questions}:
            return
        try:
            given = self._answer(question)
            answer = partial(self.pane.answer_question, self.session_id, question.id, given.action, given.content)
            self.thread.wait(answer)
        except NoQuestionError as error:
            self.screen.remark(f"({error})", "yellow")
        except InvalidInputError as error:
            self.screen.fail(str(error))
            self._settle_question(question)
        except KeyboardInterrupt:
            self.screen.remark()
            self.cancel()


def read_from_disk(path: Path) -> NewFile:
    """Return a file that goes with a message.

    Raises:
        InvalidInputError: it cannot be read.
    """
    try:
        return NewFile.at(path.expanduser())
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from None


def ask_in_terminal(screen: Screen, call: ToolCall) -> Decision:
    """Show a call and ask until there is an answer."""
    screen.line(f"{_called(call)} wants to run with", "bold")
    screen.line(_pretty(call.arguments))
    while True:
        answer = input(QUESTION).strip().lower()[:1]
        if answer in ANSWERS:
            return ANSWERS[answer]
        screen.line("Type o, s or d. Ctrl-C cancels the whole turn.")


def answer_alone(screen: Screen, yes: bool, call: ToolCall) -> Decision:
    """Decide about a call when there is no user to ask."""
    if yes:
        return "allow_once"
    reason = "it needs approval; use --yes to allow such calls"
    screen.remark(f"denied {_called(call)} {call.arguments}: {reason}", "yellow")
    return "deny"


class _Teller:
    """Prints events, and keeps what the end of a turn depends on."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._calls: dict[str, ToolCall] = {}
        self._text = ""
        self._thought = False
        self.ending = Ending()

    def expect(self, calls: Sequence[ToolCall]) -> None:
        """Learn about calls whose results are to come."""
        self._calls |= {call.id: call for call in calls}

    def tell(self, event: Live) -> None:
        """Print one event."""
        if isinstance(event, Delta):
            self._stream(event)
        elif isinstance(event, ToolProgress):
            self._progress(event)
        else:
            self._happen(event.event)

    def _stream(self, delta: Delta) -> None:
        if delta.kind == "text":
            if self._thought and not self._text:
                self._screen.write("\n\n")
            self._text += delta.text
            self._screen.write(delta.text)
        elif self._screen.is_terminal:
            self._thought = True
            self._screen.write(delta.text, "dim italic")

    def _progress(self, told: ToolProgress) -> None:
        name = _called(self._calls[told.call_id]) if told.call_id in self._calls else "the tool"
        far = f"{told.progress:g} of {told.total:g}" if told.total else f"{told.progress:g}"
        self._screen.remark(f"… {name} {far}{f': {_shortened(told.message)}' if told.message else ''}")

    def _happen(self, event: Event) -> None:
        match event:
            case ModelReplied(step=step):
                self._end_of_step(step.text)
                self.expect(step.tool_calls)
                for call in step.tool_calls:
                    self._screen.remark(f"→ {_called(call)} {call.arguments}")
            case ToolReturned(result=result):
                name = _called(self._calls[result.call_id]) if result.call_id in self._calls else "the tool"
                word = "failed" if result.is_error else "answered"
                self._screen.remark(
                    f"← {name} {word}: {_shortened(result.content)}", "red" if result.is_error else "dim"
                )
            case ApprovalRequested(calls=calls):
                self.ending = replace(self.ending, waiting=calls)
            case QuestionAnswered(action=action, actor="system", reason=reason):
                self._screen.remark(f"a question of the tool: {action} ({reason})", "yellow")
            case ItemAdded(item=item):
                self._screen.remark(f"+ {item.ref} is now in this session")
            case ServerArrived(server=server, items=items):
                self._screen.remark(f"+ tool server {server} is ready, {len(items)} of its tools are in this session")
            case TurnFinished(outcome=outcome, error=error):
                self._end_of_step("")
                self.ending = Ending(outcome, error)
            case _:
                pass

    def _end_of_step(self, whole: str) -> None:
        """Finish the line. What came by another way than this stream is printed now."""
        rest = whole.removeprefix(self._text) if whole.startswith(self._text) else ""
        if rest:
            self._screen.write(rest)
        if (self._text + rest and not (self._text + rest).endswith("\n")) or (self._thought and not self._text):
            self._screen.write("\n")
        self._text, self._thought = "", False


def _called(call: ToolCall) -> str:
    return str(call.ref or call.offered_name)


def _pretty(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), indent=2, ensure_ascii=False)
    except ValueError:
        return arguments


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= RESULT_CHARACTERS else f"{line[:RESULT_CHARACTERS]} …"
