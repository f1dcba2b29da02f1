"""What an open turn waits for: decisions about tool calls, answers to tools, and results of the caller's tools."""

from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import validate
from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft202012Validator

from windowpane.context.events import ApprovalDecided, QuestionAnswered
from windowpane.context.ids import Actor
from windowpane.context.messages import AnswerAction, Decision, ToolQuestion, ToolResult
from windowpane.context.session import SessionState
from windowpane.errors import InvalidInputError, NoQuestionError, NoResultAwaitedError, NothingToApproveError


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
    state: SessionState,
    question_id: str,
    action: AnswerAction,
    content: Mapping[str, Any] | None,
    actor: Actor,
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
    return QuestionAnswered(
        turn=state.open_turn.turn, question_id=question_id, action=action, content=filled, actor=actor
    )


def _filled(question: ToolQuestion, content: Mapping[str, Any] | None) -> dict[str, Any]:
    filled = dict(content or {})
    try:
        validate(filled, question.schema, cls=Draft202012Validator)
    except ValidationError as error:
        where = ".".join(map(str, error.absolute_path))
        raise InvalidInputError(f"{where or 'the form'}: {error.message}") from None
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
