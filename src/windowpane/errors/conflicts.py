"""Errors of a state that does not allow what was asked, or has changed meanwhile."""

from collections.abc import Sequence

from windowpane.errors.base import WindowpaneError


class ConflictError(WindowpaneError):
    """The state does not allow what was asked, or has changed meanwhile."""

    code = "conflict"


class SequenceConflictError(ConflictError):
    """Another worker appended first."""

    code = "sequence_conflict"

    def __init__(self, session_id: str, expected_seq: int, actual_seq: int) -> None:
        super().__init__(f"session {session_id!r} is at {actual_seq}, not at {expected_seq}")
        self.session_id = session_id
        self.expected_seq = expected_seq
        self.actual_seq = actual_seq


class LeaseLostError(ConflictError):
    """Another worker has taken the session over since this one took its lease."""

    code = "lease_lost"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} was taken over by another worker. Nothing was written. Try again.")
        self.session_id = session_id


class SessionBusyError(ConflictError):
    """Another turn of this session is running."""

    code = "session_busy"

    def __init__(self, session_id: str) -> None:
        super().__init__("session busy: another turn is running; wait for it, cancel it, or ask to wait")
        self.session_id = session_id


class WorkerFullError(ConflictError):
    """The worker runs as many turns as it may. Nothing was stored."""

    code = "worker_full"

    def __init__(self, max_turns: int, retry_after_s: int) -> None:
        super().__init__(
            f"this server runs as many turns as it may at once ({max_turns} in a worker); "
            f"send the message again in {retry_after_s} s"
        )
        self.max_turns = max_turns
        self.retry_after_s = retry_after_s


class TooManyTurnsError(ConflictError):
    """The owner has as many turns running in this worker as it may. Nothing was stored."""

    code = "too_many_turns"

    def __init__(self, max_turns_per_owner: int, retry_after_s: int) -> None:
        super().__init__(
            f"you have as many turns running at once as one owner may ({max_turns_per_owner} in a worker); "
            f"wait for one to end, or send this again in {retry_after_s} s"
        )
        self.max_turns_per_owner = max_turns_per_owner
        self.retry_after_s = retry_after_s


class ApprovalPendingError(ConflictError):
    """The session's turn waits for a decision about tool calls."""

    code = "approval_pending"

    def __init__(self, turn: int, calls: tuple[str, ...]) -> None:
        super().__init__(f"turn {turn} waits for a decision about {', '.join(calls)}; decide or cancel it first")
        self.turn = turn
        self.calls = calls


class NoQuestionError(ConflictError):
    """An answer came for a question that no running tool asks, or not any more."""

    code = "no_question"

    def __init__(self, question_id: str, waiting: Sequence[str]) -> None:
        now = f"these do: {', '.join(waiting)}" if waiting else "none does at the moment"
        super().__init__(f"question {question_id!r} does not wait for an answer; {now}")


class NothingToApproveError(ConflictError):
    """A decision came for calls that do not wait for one."""

    code = "nothing_to_approve"

    def __init__(self, why: str) -> None:
        super().__init__(why)


class NoResultAwaitedError(ConflictError):
    """No tool call of this session waits for these results."""

    code = "no_result_awaited"

    def __init__(self, why: str) -> None:
        super().__init__(why)


class NoTurnRunningError(ConflictError):
    """There is no turn to cancel."""

    code = "no_turn_running"

    def __init__(self) -> None:
        super().__init__("no turn is running in this session")


class WrongSessionError(ConflictError):
    """A change names another session than the one it was sent to."""

    code = "wrong_session"

    def __init__(self, session_id: str, meant: str) -> None:
        super().__init__(f"this change names session {meant!r} and was sent to {session_id!r}; nothing was changed")
        self.session_id = session_id
        self.meant = meant


class DifferentSessionError(ConflictError):
    """Two stores have different sessions of one id."""

    code = "different_session"

    def __init__(self, session_id: str, why: str) -> None:
        super().__init__(
            f"another session {session_id!r} already exists there: {why}; it was not changed. "
            "Delete it there, or copy to an empty store."
        )
        self.session_id = session_id


class AlreadyThereError(ConflictError):
    """Something is to be created that already exists."""

    code = "already_there"

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} already exists ({where}); change it, or choose another name")
        self.what = what
        self.where = where


class StaleRevisionError(ConflictError):
    """It was changed since it was read. `current` is its revision now; None: it was deleted."""

    code = "stale_revision"

    def __init__(self, what: str, current: str | None) -> None:
        happened = "was deleted" if current is None else "has changed"
        now = "" if current is None else f" (now {current})"
        super().__init__(f"{what} {happened} since you read it{now}. Read it again and retry. Nothing was written.")
        self.what = what
        self.current = current


class RecordedSessionError(ConflictError):
    """The session was recorded from another program, and has no agent that could answer."""

    code = "recorded_session"

    def __init__(self, program: str) -> None:
        super().__init__(
            f"this session was recorded from {program} and has no agent; go on with it in {program}, "
            "or begin a session of an agent"
        )
        self.program = program


class KeyReusedError(ConflictError):
    """An idempotency key was used again with another message or another request."""

    code = "key_reused"

    def __init__(self, key: str, used_for: str = "another message") -> None:
        super().__init__(f"the idempotency key {key!r} was used before for {used_for}; use a new one")
        self.key = key
