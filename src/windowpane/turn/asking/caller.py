"""The user and the model behind one running tool call.

A question is stored, shown to every client that follows the session, and answered by whichever answers first. The
worker keeps the turn meanwhile: its lease is renewed, and the time of the call does not run. A worker that dies takes
the call with it: the turn ends as interrupted, like any other.
"""

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from windowpane import telemetry
from windowpane.calls.recorder import CallRecorder, recording
from windowpane.context.events import Event, ModelSampled, QuestionAnswered, QuestionAsked, ToolProgress
from windowpane.context.ids import BlobHash
from windowpane.context.messages import AnswerAction, Step, ToolCall, ToolQuestion
from windowpane.context.request import CallSettings, RequestMessage
from windowpane.context.session import SessionState
from windowpane.errors import ModelStreamBrokenError, WindowpaneError
from windowpane.models.base import ChatModel, ModelStep
from windowpane.text.tokens import message_tokens
from windowpane.tools.asking import Answered, Asked, NotSampledError, Sampled, Sampling
from windowpane.tools.permissions import Verdict
from windowpane.turn.asking.sampling import MOST_SAMPLED_TOKENS, MOST_SAMPLES, prepared, shown

MOST_QUESTIONS = 20
"""How much one call may ask its user."""
LONGEST_MESSAGE = 20_000
"""How many characters of a question are shown."""
LARGEST_SCHEMA_BYTES = 64 * 1024
ANSWER_WITHIN_S = 24 * 3600.0
"""How long a question waits. A call that is left alone for so long is not waited for any more."""
PROGRESS_EVERY_S = 0.1
"""How often the progress of a call is told, at most."""

UNATTENDED = "no user can be asked in this request"


class AppendToTurn(Protocol):
    """Stores events of the turn, with the texts that they name, and returns the state after them."""

    async def __call__(self, events: Sequence[Event], blobs: Mapping[BlobHash, str] | None = None) -> SessionState: ...


WaitForAnswer = Callable[[str, int], Awaitable[QuestionAnswered]]
"""Returns the answer to a question, when the log has one after a sequence number."""


@dataclass(kw_only=True)
class TurnCaller:
    """What a tool call of a turn can reach. `verdict` is what the tool's permission says, `listed` that a user sees the
    session. What the store failed with is kept in `failed`, for the turn: the tool is only told that it was cancelled.
    """

    turn: int
    state: SessionState
    call: ToolCall
    model: ChatModel
    settings: CallSettings
    verdict: Verdict
    append: AppendToTurn
    tell: Callable[[ToolProgress], None]
    answer: WaitForAnswer
    failed: WindowpaneError | None = None
    _asked: int = 0
    _samples: int = 0
    _sampled_tokens: int = 0
    _told_at: float = 0
    _storing: anyio.Lock = field(default_factory=anyio.Lock)

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Tell those who follow how far the call has come: not each little step, but always the last one."""
        now = anyio.current_time()
        if now - self._told_at >= PROGRESS_EVERY_S or (total is not None and progress >= total):
            self._told_at = now
            self.tell(ToolProgress(self.turn, self.call.id, progress, total, message[:LONGEST_MESSAGE]))

    async def ask(self, asked: Asked) -> Answered:
        """Ask the user, and wait for the answer."""
        question = ToolQuestion(
            id=secrets.token_hex(6),
            call_id=self.call.id,
            server=asked.server,
            kind="url" if asked.url else "form",
            message=asked.message[:LONGEST_MESSAGE],
            schema=asked.schema,
            url=asked.url,
        )
        fault = _fault(asked)
        refusal = UNATTENDED if not self.state.listed else fault
        answered = await self._put(question, "decline" if refusal else None, refusal)
        return Answered(answered.action, answered.content)

    async def sample(self, sampling: Sampling) -> Sampled:
        """Ask the model, if the tool's permission or the user lets it.

        Raises:
            NotSampledError: it may not, or it is too much.
        """
        ready = await prepared(sampling, self.settings)
        tokens = sum(map(message_tokens, ready.messages)) + (ready.settings.max_output_tokens or 0)
        question = ToolQuestion(
            id=secrets.token_hex(6),
            call_id=self.call.id,
            server=sampling.server,
            kind="sampling",
            message=shown(sampling, ready.settings)[:LONGEST_MESSAGE],
        )
        self._samples += 1
        self._sampled_tokens += tokens
        if self._samples > MOST_SAMPLES:
            action, why = "decline", f"one call may ask the model {MOST_SAMPLES} times"
        elif self._sampled_tokens > MOST_SAMPLED_TOKENS:
            action, why = "decline", f"one call may use {MOST_SAMPLED_TOKENS:,} tokens of the model"
        elif self.verdict == "run":
            action, why = "accept", "this tool needs no approval"
        elif not self.state.listed:
            action, why = "decline", UNATTENDED
        else:
            action, why = None, ""
        answered = await self._put(question, action, why)
        if answered.action != "accept":
            said = answered.reason or "the user did not allow it"
            raise NotSampledError(f"the model was not asked: {said}")
        return await self._sampled(question, ready.messages, ready.settings, ready.blobs)

    async def _sampled(
        self,
        question: ToolQuestion,
        messages: Sequence[RequestMessage],
        settings: CallSettings,
        blobs: Mapping[BlobHash, str],
    ) -> Sampled:
        calls = CallRecorder(self._append, purpose="sampling", turn=self.turn)
        calls.begin_step(self._samples, settings.model, sum(map(message_tokens, messages)), settings.price)
        try:
            with (
                telemetry.model_call(self.state.id, settings, messages, (), "sampling") as measured,
                recording(calls),
            ):
                step = await _said(self.model, messages, settings, blobs)
                telemetry.describe_step(measured, step)
        except WindowpaneError as error:
            await self._stored([*calls.take()])
            raise NotSampledError(f"the model could not be asked: {error}") from None
        await self._stored([*calls.take(), ModelSampled(turn=self.turn, question_id=question.id, step=step)])
        return Sampled(step.text, step.model or settings.model, step.finish_reason)

    async def _put(self, question: ToolQuestion, action: AnswerAction | None, reason: str) -> QuestionAnswered:
        """Store a question and return its answer: the user's, or this one of the system's."""
        self._asked += 1
        if action is None and self._asked > MOST_QUESTIONS:
            action, reason = "decline", f"one call may ask {MOST_QUESTIONS} times"
        asked = QuestionAsked(turn=self.turn, question=question)
        try:
            if action is not None:
                answered = self._by_system(question, action, reason)
                await self._append([asked, answered])
                return answered
            state = await self._append([asked])
            with anyio.move_on_after(ANSWER_WITHIN_S):
                return await self.answer(question.id, state.seq)
            answered = self._by_system(question, "cancel", "no answer within a day")
            await self._append([answered])
        except WindowpaneError as error:
            self.failed = error
            return self._by_system(question, "cancel", str(error))
        return answered

    def _by_system(self, question: ToolQuestion, action: AnswerAction, reason: str) -> QuestionAnswered:
        return QuestionAnswered(turn=self.turn, question_id=question.id, action=action, actor="system", reason=reason)

    async def _stored(self, events: Sequence[Event]) -> None:
        try:
            await self._append(events)
        except WindowpaneError as error:
            self.failed = error

    async def _append(self, events: Sequence[Event], blobs: Mapping[BlobHash, str] | None = None) -> SessionState:
        # A server may ask several things at once.
        async with self._storing:
            self.state = await self.append(events, blobs)
            return self.state


def _fault(asked: Asked) -> str:
    """Return why a question cannot be shown; empty when it can."""
    if asked.url:
        return "" if asked.url.startswith(("https://", "http://")) else "the address is not one of the web"
    if len(json.dumps(asked.schema)) > LARGEST_SCHEMA_BYTES:
        return "the form is too large"
    # Few tools ask, and a command that only looks back loads none of it.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator

    try:
        Draft202012Validator.check_schema(asked.schema)
    except SchemaError as error:
        return f"the form is not valid JSON Schema: {error.message[:200]}"
    return ""


async def _said(
    model: ChatModel, messages: Sequence[RequestMessage], settings: CallSettings, blobs: Mapping[BlobHash, str]
) -> Step:
    async with aclosing(model.stream(messages, (), settings, blobs)) as events:
        async for event in events:
            if isinstance(event, ModelStep):
                return event.step
    raise ModelStreamBrokenError("the model's answer ended without an end", partial="")
