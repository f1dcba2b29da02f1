"""Errors of what was asked for: it cannot be used, does not exist, or is not allowed."""

import math
from datetime import datetime
from decimal import Decimal

from windowpane.errors.base import WindowpaneError


class InvalidInputError(WindowpaneError):
    """The caller gave something that cannot be used."""

    code = "invalid_input"


class InvalidSettingError(InvalidInputError):
    """A setting has a value that cannot be used."""

    code = "invalid_setting"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name


class UnknownItemError(InvalidInputError):
    """The agent has no such item."""

    code = "unknown_item"

    def __init__(self, item: str, close: tuple[str, ...] = ()) -> None:
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        super().__init__(f"the agent has no item {item!r}{hint}")
        self.item = item


class ContextTooLargeError(InvalidInputError):
    """What must be sent does not fit the model's window."""

    code = "context_too_large"

    def __init__(
        self, needed_tokens: int, room_tokens: int, largest: tuple[str, ...], *, window: str = "", reply_tokens: int = 0
    ) -> None:
        reserved = f" ({reply_tokens} are reserved for the reply: `max_output_tokens`)" if reply_tokens else ""
        whole = f" in its window of {window}{reserved}" if window else ""
        super().__init__(
            f"what must be sent takes {needed_tokens} tokens and the model has room for {max(room_tokens, 0)}{whole}; "
            f"the largest parts are {', '.join(largest)}. "
            "Remove or shorten one, or choose a model with a larger window (`context_window` in agent.yaml states it)."
        )
        self.needed_tokens = needed_tokens
        self.room_tokens = room_tokens
        self.largest = largest


class InvalidFileError(InvalidInputError):
    """A file of an agent's folder cannot be written as asked. `problems` say where and why; nothing was written."""

    code = "invalid_file"

    def __init__(self, file: str, problems: tuple[tuple[int | None, str], ...]) -> None:
        said = "; ".join(reason if line is None else f"line {line}: {reason}" for line, reason in problems)
        super().__init__(f"{file} was not written: {said}")
        self.file = file
        self.problems = tuple({"file": file, "line": line, "reason": reason} for line, reason in problems)


class RevisionMissingError(InvalidInputError):
    """A change did not say which revision it is a change of."""

    code = "revision_missing"

    def __init__(self) -> None:
        super().__init__(
            "name the revision that you change: send its `ETag` as `If-Match`, or `If-Match: *` for any revision"
        )


class NotFoundError(WindowpaneError):
    """Something that was asked for does not exist."""

    code = "not_found"


class SessionNotFoundError(NotFoundError):
    """No session has this id."""

    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r}")
        self.session_id = session_id


class TurnNotFoundError(NotFoundError):
    """The session has no such turn."""

    code = "turn_not_found"

    def __init__(self, session_id: str, turn: int) -> None:
        super().__init__(f"session {session_id!r} has no turn {turn}")
        self.session_id = session_id
        self.turn = turn


class CallNotFoundError(NotFoundError):
    """The turn, or the session, has no such call."""

    code = "call_not_found"

    def __init__(self, turn: int | None, number: int, calls: int) -> None:
        where = "the session" if turn is None else f"turn {turn}"
        super().__init__(f"{where} has no call {number}; it made {calls}")


class AgentNotFoundError(NotFoundError):
    """No agent has this name."""

    code = "agent_not_found"

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        named = f"no agent {name!r}" if name else "there is no agent yet"
        others = f"available: {', '.join(known)}" if known else "`windowpane init` creates one"
        super().__init__(f"{named}; {others}")
        self.name = name


class BlobNotFoundError(NotFoundError):
    """No text with this hash is kept for the session."""

    code = "blob_not_found"

    def __init__(self, blob_hash: str) -> None:
        super().__init__(f"no text with hash {blob_hash[:12]} is kept; it was erased")
        self.blob_hash = blob_hash


class TokenNotFoundError(NotFoundError):
    """No token has this id."""

    code = "token_not_found"

    def __init__(self, token: str) -> None:
        super().__init__(f"no token {token!r}; `windowpane token list` shows them all")
        self.token = token


class AccessError(WindowpaneError):
    """The caller may not do this."""

    code = "access_error"


class TokenNeededError(AccessError):
    """The request came without a token that can be used."""

    code = "token_needed"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}; send `Authorization: Bearer TOKEN`, or give the token as `api_key` to a client of OpenAI or "
            "Anthropic (`windowpane token create --owner NAME` creates one)"
        )


class ScopeNeededError(AccessError):
    """The caller's token allows less than this."""

    code = "scope_needed"

    def __init__(self, scope: str) -> None:
        super().__init__(f"this needs a token with the scope {scope!r}; yours does not have it")
        self.scope = scope


class TooManyRequestsError(AccessError):
    """The caller sends more requests than it may."""

    code = "too_many_requests"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many requests; wait {retry_after_s} s and send fewer")
        self.retry_after_s = retry_after_s


class CostLimitError(AccessError):
    """The owner's model calls have cost as much as they may in this period."""

    code = "cost_limit_reached"

    def __init__(
        self, period: str, limit_usd: Decimal, spent_usd: Decimal, resets_at: datetime, *, now: datetime
    ) -> None:
        super().__init__(
            f"your model calls have reached the limit of {_dollars(limit_usd)} a {period} "
            f"(spent: {_dollars(spent_usd)}); try again after {resets_at:%Y-%m-%d %H:%M} UTC, "
            "or ask who runs this server for a higher limit"
        )
        self.period = period
        self.limit_usd = str(limit_usd)
        self.spent_usd = str(spent_usd)
        self.resets_at = resets_at.isoformat()
        self.retry_after_s = math.ceil((resets_at - now).total_seconds())


class TokensUnreadableError(AccessError):
    """The file with the tokens cannot be used, so callers cannot be identified."""

    code = "tokens_unreadable"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            f"the tokens in {where} cannot be used: {why}; restore the file, or delete it and create new tokens"
        )


class MissingFileError(NotFoundError):
    """There is no such file where files may be read."""

    code = "missing_file"

    def __init__(self, file: str, why: str = "there is no such file") -> None:
        super().__init__(f"{file}: {why}")
        self.file = file


def _dollars(amount: Decimal) -> str:
    """Return an amount as people write it; one below a dollar with everything that is not zero."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount.normalize():f}"
