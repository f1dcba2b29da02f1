"""Show one turn as it happens, and ask the person about tool calls that wait.

Ctrl-C while the answer comes cancels the turn; Ctrl-C at a question about a tool call cancels it too.
"""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from windowpane.cli.chat.thread import EngineThread, Interrupted
from windowpane.cli.terminal import Screen
from windowpane.context.events import (
    ApprovalRequested,
    Delta,
    Event,
    ItemAdded,
    Live,
    ModelReplied,
    ServerArrived,
    ToolReturned,
    TurnError,
    TurnFinished,
)
from windowpane.context.ids import SessionId
from windowpane.context.messages import Decision, Outcome, ToolCall
from windowpane.errors import NoTurnRunningError

Ask = Callable[[ToolCall], Decision]
"""How a decision about one tool call is had. Raises `KeyboardInterrupt` to cancel the turn, `EOFError` to leave it."""

ANSWERS: dict[str, Decision] = {"o": "allow_once", "s": "allow_session", "d": "deny"}
QUESTION = "Allow it? [o]nce, for this [s]ession, [d]eny: "
RESULT_CHARACTERS = 200
START_S = 20.0
"""How long the first message waits for tool servers and the search to start."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended, or which of its tool calls wait."""

    outcome: Outcome | None = None
    error: TurnError | None = None
    waiting: tuple[ToolCall, ...] = ()


class Conversation:
    """One session in the terminal."""

    def __init__(self, thread: EngineThread, screen: Screen, session_id: SessionId, ask: Ask) -> None:
        self.thread = thread
        self.screen = screen
        self.session_id = session_id
        self._ask = ask
        self._teller = _Teller(screen)
        self._connected = False

    def send(self, message: str) -> Ending:
        """Send a message and show everything until the turn ends.

        Raises:
            WindowpaneError: the turn could not begin.
            EOFError: nobody is there to decide; the turn waits.
        """
        return self._settle(self._follow(self._turn(message)))

    def decide(self, calls: Sequence[ToolCall]) -> Ending:
        """Go on with a turn that waits for decisions."""
        return self._settle(Ending(waiting=tuple(calls)))

    def cancel(self) -> None:
        """Stop the turn that is running or waiting."""
        try:
            self.thread.wait(partial(self.thread.engine.cancel, self.session_id))
        except NoTurnRunningError:
            return

    async def _turn(self, message: str) -> AsyncIterator[Live]:
        """Run a turn; the first one begins when tool servers and the search, just starting, have had their time."""
        engine = self.thread.engine
        if not self._connected:
            await engine.get_ready(self.session_id, message, within_s=START_S)
            self._connected = True
        async for event in engine.turn(self.session_id, message):
            yield event

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
                ending = self._follow(self.thread.engine.approve(self.session_id, decisions))
        if ending.error is not None:
            self.screen.fail(ending.error.message)
        elif ending.outcome in ("cancelled", "interrupted"):
            self.screen.remark(f"({ending.outcome}; what was said so far is kept)", "yellow")
        return ending

    def _follow(self, live: AsyncIterator[Live]) -> Ending:
        self._teller.ending = Ending()
        with self.thread.events(live) as events:
            while (event := events.take()) is not None:
                if isinstance(event, Interrupted):
                    self.cancel()
                else:
                    self._teller.tell(event)
        return self._teller.ending


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
    """Decide about a call when nobody can be asked."""
    if yes:
        return "allow_once"
    screen.remark(f"denied {_called(call)} {call.arguments}: nobody is here to ask; --yes allows such calls", "yellow")
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
