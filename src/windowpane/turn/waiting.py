"""What an open turn waits for: decisions about tool calls, answers to tools, and results of the caller's tools.

A turn that waits is in the store alone, and any worker lets it go on. What it waited for is stored under the session's
lease, with its fence, so that of several callers one alone decides.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from windowpane.context.events import ApprovalDecided, Event, QuestionAnswered, ToolReturned
from windowpane.context.ids import Actor, BlobHash, SessionId
from windowpane.context.items import Tool
from windowpane.context.messages import AnswerAction, Decision, ToolQuestion, ToolResult
from windowpane.context.request import ReplyOptions
from windowpane.context.session import SessionState, check_answerable, open_turn
from windowpane.errors import NoQuestionError, NoResultAwaitedError, NothingToApproveError
from windowpane.stores.base import Lease
from windowpane.stores.sessions import Sessions
from windowpane.turn.admission import Admission
from windowpane.turn.begin import setting_events
from windowpane.turn.costs import Costs
from windowpane.turn.lease import Leases
from windowpane.turn.requests import TurnRequests
from windowpane.turn.run import fitted
from windowpane.turn.runner import Runner


class WaitingTurns:
    """Lets turns go on with what they waited for."""

    def __init__(
        self,
        sessions: Sessions,
        leases: Leases,
        requests: TurnRequests,
        costs: Costs,
        runner: Runner,
        admission: Admission,
    ) -> None:
        self._sessions, self._leases = sessions, leases
        self._requests, self._costs = requests, costs
        self._runner, self._admission = runner, admission

    async def decide(self, session_id: SessionId, decisions: Mapping[str, Decision], actor: Actor) -> int:
        """Store decisions about waiting calls and let the turn run; return its number. `Engine.approve()` says more."""
        async with self._taken(session_id) as lease:
            changed = await self._sessions.change(
                session_id, lambda state: [decision(state, decisions, actor)], fence=lease.fence
            )
            return self._runner.launch(changed.state, lease, changed.recorded)

    async def give_results(
        self,
        session_id: SessionId,
        results: Sequence[ToolResult],
        blobs: Mapping[BlobHash, str],
        settings: Mapping[str, Any],
        *,
        brought: Sequence[Tool],
        reply_options: ReplyOptions | None,
    ) -> int:
        """Store results and let the turn run; return its number. `Engine.answer_calls()` says more."""
        async with self._taken(session_id) as lease:
            state = await self._sessions.state(session_id)
            check_answerable(state)
            check_results(state, results)
            request = await self._requests.read(state)
            if request is None:
                await self._costs.check(state.owner)

            def given(now: SessionState) -> list[Event]:
                check_results(now, results)
                turn = open_turn(now)
                fits = [
                    replace(result, content=fitted(request, turn, result.content, result.attachments))
                    if request
                    else result
                    for result in results
                ]
                returned = (ToolReturned(turn=turn.turn, result=result) for result in fits)
                return [*setting_events(now, settings), *returned]

            changed = await self._sessions.change(session_id, given, blobs=blobs or None, fence=lease.fence)
            return self._runner.launch(
                changed.state, lease, changed.recorded, brought=brought, reply_options=reply_options
            )

    @asynccontextmanager
    async def _taken(self, session_id: SessionId) -> AsyncGenerator[Lease]:
        """Hold the session and one of its owner's places. The session is given back if the turn does not run then."""
        with self._admission.beginning((await self._sessions.state(session_id)).owner, goes_on=True):
            lease = await self._leases.take(session_id)
            try:
                yield lease
            except BaseException:
                await self._leases.release(session_id, lease)
                raise


def decision(state: SessionState, decisions: Mapping[str, Decision], actor: Actor) -> ApprovalDecided:
    """Return what is recorded of these decisions.

    Raises:
        NothingToApproveError: no call waits, or one of the ids is not a waiting call's.
    """
    waiting = {call.id for call in state.open_turn.undecided} if state.open_turn else set[str]()
    if state.open_turn is None or not waiting:
        raise NothingToApproveError("no tool call of this session waits for a decision")
    if not decisions:
        raise NothingToApproveError(f"no decision was given; these calls wait: {', '.join(sorted(waiting))}")
    if unknown := sorted(set(decisions) - waiting):
        raise NothingToApproveError(
            f"these calls do not wait for a decision: {', '.join(unknown)}; these do: {', '.join(sorted(waiting))}"
        )
    return ApprovalDecided(turn=state.open_turn.turn, decisions=dict(decisions), actor=actor)


def answer(
    state: SessionState, question_id: str, action: AnswerAction, content: Mapping[str, Any] | None
) -> QuestionAnswered:
    """Return what is recorded of the answer to a question of a running tool.

    Raises:
        NoQuestionError: it is not asked, or not any more.
        InvalidInputError: a form that is accepted is not filled in as it must be. The question stays.
    """
    asked = state.open_turn.questions if state.open_turn else ()
    question = next((each for each in asked if each.id == question_id), None)
    if state.open_turn is None or question is None:
        raise NoQuestionError(question_id, [each.id for each in asked])
    filled = _filled(question, content) if action == "accept" and question.kind == "form" else None
    return QuestionAnswered(turn=state.open_turn.turn, question_id=question_id, action=action, content=filled)


def _filled(question: ToolQuestion, content: Mapping[str, Any] | None) -> dict[str, Any]:
    filled = dict(content or {})
    # Few tools ask, and a command that only looks back loads none of it.
    from windowpane.turn.asking.form import check_filled

    check_filled(filled, question.schema)
    return filled


def check_results(state: SessionState, results: Sequence[ToolResult]) -> None:
    """Make sure that these results are waited for.

    Raises:
        NoResultAwaitedError: no call waits for one, or one of the ids is not a waiting call's.
    """
    waiting = {call.id for call in state.open_turn.for_client} if state.open_turn else set[str]()
    if not waiting:
        raise NoResultAwaitedError("no tool call of this session waits for a result; send a message instead")
    if not results:
        raise NoResultAwaitedError(f"no result was given; these calls wait: {', '.join(sorted(waiting))}")
    if unknown := sorted({result.call_id for result in results} - waiting):
        waited = ", ".join(sorted(waiting))
        raise NoResultAwaitedError(
            f"these tool calls are not waiting for a result: {', '.join(unknown)}; these wait: {waited}"
        )
