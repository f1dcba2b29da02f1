"""Every error that Windowpane raises on purpose, as one tree.

    WindowpaneError
    ├── InvalidInputError           the caller can correct it
    │   ├── InvalidSettingError
    │   ├── UnknownItemError
    │   ├── ContextTooLargeError
    │   ├── InvalidFileError
    │   └── RevisionMissingError
    ├── NotFoundError
    │   ├── SessionNotFoundError
    │   ├── TurnNotFoundError
    │   ├── AgentNotFoundError
    │   ├── TokenNotFoundError
    │   └── BlobNotFoundError
    ├── AccessError                 the caller may not do this
    │   ├── TokenNeededError
    │   ├── ScopeNeededError
    │   ├── TooManyRequestsError
    │   └── TokensUnreadableError
    ├── ConflictError               somebody else was first
    │   ├── SequenceConflictError
    │   ├── SessionBusyError
    │   ├── ApprovalPendingError
    │   ├── NothingToApproveError
    │   ├── NoResultAwaitedError
    │   ├── NoTurnRunningError
    │   ├── WrongSessionError
    │   ├── DifferentSessionError
    │   ├── AlreadyThereError
    │   ├── StaleRevisionError
    │   └── KeyReusedError
    ├── AgentError                  the agent's folder needs a hand
    │   └── MissingCorePromptError
    ├── ModelError                  the model call failed
    │   ├── UnknownModelError
    │   ├── ModelAuthError
    │   ├── ModelRateLimitedError
    │   ├── ModelRejectedError
    │   ├── ModelUnavailableError
    │   ├── ModelStreamBrokenError
    │   ├── ModelTimeoutError
    │   └── TooManyModelCallsError
    ├── ToolError                   a tool server or a tool call failed
    │   ├── ToolServerDownError
    │   └── ToolTimeoutError
    ├── FetchError                  something from the web could not be had
    │   ├── FetchRefusedError
    │   ├── FetchFailedError
    │   └── SearchEngineError
    ├── EmbedderError               meaning cannot be measured; words decide alone
    │   ├── WeightsMissingError
    │   ├── WeightsDamagedError
    │   └── EndpointError
    ├── ServerError                 another server of Windowpane
    │   ├── RemoteError
    │   └── UnreachableError
    └── StoreError                  the store cannot do its work
        ├── StoreCorruptError
        ├── StoreTooNewError
        ├── StoreRolledBackError
        └── StoreUnavailableError

Each class owns its message and carries the facts. `code` is the stable name that doors and records show.
"""

from typing import ClassVar


class WindowpaneError(Exception):
    """Anything that Windowpane raises on purpose."""

    code: ClassVar[str] = "error"


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

    def __init__(self, needed_tokens: int, room_tokens: int, largest: tuple[str, ...]) -> None:
        super().__init__(
            f"what must be sent takes {needed_tokens} tokens and the model has room for {room_tokens}; "
            f"the largest parts are {', '.join(largest)}. "
            "Remove or shorten one, or choose a model with a larger window."
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
            "say which revision you change: send its `ETag` as `If-Match`, or `If-Match: *` to change whatever is there"
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


class AgentNotFoundError(NotFoundError):
    """No agent has this name."""

    code = "agent_not_found"

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        names = ", ".join(known) or "none yet; `windowpane init` makes one"
        super().__init__(f"no agent {name!r} (there is: {names})" if name or known else f"no agent ({names})")
        self.name = name


class BlobNotFoundError(NotFoundError):
    """No text with this hash is kept for the session."""

    code = "blob_not_found"

    def __init__(self, blob_hash: str) -> None:
        super().__init__(f"no text with hash {blob_hash[:12]} is kept")
        self.blob_hash = blob_hash


class TokenNotFoundError(NotFoundError):
    """No token has this id."""

    code = "token_not_found"

    def __init__(self, token: str) -> None:
        super().__init__(f"no token {token!r}; `windowpane token list` shows those there are")
        self.token = token


class AccessError(WindowpaneError):
    """The caller may not do this."""

    code = "access_error"


class TokenNeededError(AccessError):
    """The request came without a token that can be used."""

    code = "token_needed"

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; send `Authorization: Bearer TOKEN` (`windowpane token create` makes one)")


class ScopeNeededError(AccessError):
    """The caller's token allows less than this."""

    code = "scope_needed"

    def __init__(self, scope: str) -> None:
        super().__init__(f"this needs a token with the scope {scope!r}, and yours does not have it")
        self.scope = scope


class TooManyRequestsError(AccessError):
    """The caller sends more requests than it may."""

    code = "too_many_requests"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many requests; wait {retry_after_s} s and go on more slowly")
        self.retry_after_s = retry_after_s


class TokensUnreadableError(AccessError):
    """The file with the tokens cannot be used, so nobody can be told apart."""

    code = "tokens_unreadable"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"the tokens in {where} cannot be used: {why}; restore the file, or delete it and make others")


class MissingFileError(NotFoundError):
    """There is no such file where files may be read."""

    code = "missing_file"

    def __init__(self, file: str, why: str = "there is no such file") -> None:
        super().__init__(f"{file}: {why}")
        self.file = file


class ConflictError(WindowpaneError):
    """The state is not what the caller took it for."""

    code = "conflict"


class SequenceConflictError(ConflictError):
    """Somebody else appended first."""

    code = "sequence_conflict"

    def __init__(self, session_id: str, expected_seq: int, actual_seq: int) -> None:
        super().__init__(f"session {session_id!r} is at {actual_seq}, not at {expected_seq}")
        self.session_id = session_id
        self.expected_seq = expected_seq
        self.actual_seq = actual_seq


class SessionBusyError(ConflictError):
    """Another turn of this session is running."""

    code = "session_busy"

    def __init__(self, session_id: str) -> None:
        super().__init__("session busy: another turn is running; wait for it, cancel it, or ask to wait")
        self.session_id = session_id


class ApprovalPendingError(ConflictError):
    """The session's turn waits for a decision about tool calls."""

    code = "approval_pending"

    def __init__(self, turn: int, calls: tuple[str, ...]) -> None:
        super().__init__(f"turn {turn} waits for a decision about {', '.join(calls)}; decide or cancel it first")
        self.turn = turn
        self.calls = calls


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
    """A change came for another session than the one it says it is for."""

    code = "wrong_session"

    def __init__(self, session_id: str, meant: str) -> None:
        super().__init__(f"this change is meant for session {meant!r} and came to {session_id!r}; nothing was changed")
        self.session_id = session_id
        self.meant = meant


class DifferentSessionError(ConflictError):
    """Two stores have different sessions of one id."""

    code = "different_session"

    def __init__(self, session_id: str, why: str) -> None:
        super().__init__(
            f"session {session_id!r} is there already and is another one: {why}; it was left alone. "
            "Delete it there, or copy to an empty store."
        )
        self.session_id = session_id


class AlreadyThereError(ConflictError):
    """Something is to be made that is there already."""

    code = "already_there"

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} is there already ({where}); change it, or take another name")
        self.what = what
        self.where = where


class StaleRevisionError(ConflictError):
    """Somebody else changed it since it was read. `current` is the revision that it has now; None: it is gone."""

    code = "stale_revision"

    def __init__(self, what: str, current: str | None) -> None:
        now = "it is gone" if current is None else "it was changed since"
        super().__init__(f"{what} is not as you know it: {now}; read it again. Nothing was written.")
        self.what = what
        self.current = current


class KeyReusedError(ConflictError):
    """An idempotency key came again with something else."""

    code = "key_reused"

    def __init__(self, key: str) -> None:
        super().__init__(f"the idempotency key {key!r} was used before for something else; use a new one")
        self.key = key


class AgentError(WindowpaneError):
    """The agent's folder cannot be used as it is."""

    code = "agent_error"


class MissingCorePromptError(AgentError):
    """The agent has no core prompt, and cannot start without one."""

    code = "missing_core_prompt"

    def __init__(self, agent: str, path: str) -> None:
        super().__init__(
            f"agent {agent!r} has no core prompt: write {path} and say in it who the agent is, "
            "what it is for and what it must never do"
        )
        self.agent = agent
        self.path = path


class ModelError(WindowpaneError):
    """A model call failed. `partial` is what had arrived before it did."""

    code = "model_error"

    def __init__(self, message: str, *, partial: str = "") -> None:
        super().__init__(message)
        self.partial = partial


class UnknownModelError(ModelError):
    """The model's name means nothing here, or its provider is not set up."""

    code = "unknown_model"


class ModelAuthError(ModelError):
    """The provider refused the key."""

    code = "model_auth"


class ModelRateLimitedError(ModelError):
    """The provider asked to slow down."""

    code = "model_rate_limited"

    def __init__(self, message: str, *, retry_after_s: float | None = None, partial: str = "") -> None:
        super().__init__(message, partial=partial)
        self.retry_after_s = retry_after_s


class ModelRejectedError(ModelError):
    """The provider understood the request and refused it."""

    code = "model_rejected"


class ModelUnavailableError(ModelError):
    """The provider cannot be reached or failed inside."""

    code = "model_unavailable"


class ModelStreamBrokenError(ModelError):
    """The answer stopped in the middle."""

    code = "model_stream_broken"


class ModelTimeoutError(ModelError):
    """The model took too long."""

    code = "model_timeout"


class TooManyModelCallsError(ModelError):
    """The turn needed more model calls than it may make."""

    code = "too_many_model_calls"

    def __init__(self, limit: int) -> None:
        super().__init__(f"the turn stopped after {limit} model calls; raise `max_chat_turns` to allow more")
        self.limit = limit


class ToolError(WindowpaneError):
    """A tool call failed."""

    code = "tool_error"


class ToolServerDownError(ToolError):
    """The tool's server is not connected."""

    code = "tool_server_down"

    def __init__(self, server: str, why: str) -> None:
        super().__init__(f"tool server {server!r} is not available: {why}")
        self.server = server


class ToolTimeoutError(ToolError):
    """The tool took too long."""

    code = "tool_timeout"

    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(f"{tool} gave no answer within {seconds:g} s")
        self.tool = tool


class FetchError(WindowpaneError):
    """Something from the web could not be had."""

    code = "fetch_error"


class FetchRefusedError(FetchError):
    """The address is one that is never fetched."""

    code = "fetch_refused"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} is not fetched: {why}")
        self.url = url


class FetchFailedError(FetchError):
    """The page did not come, or it holds nothing to read."""

    code = "fetch_failed"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} could not be read: {why}")
        self.url = url


class SearchEngineError(FetchError):
    """The search engine gave no results that can be used."""

    code = "search_engine_error"

    def __init__(self, engine: str, why: str) -> None:
        super().__init__(f"search with {engine} failed: {why}")
        self.engine = engine
        self.why = why


class EmbedderError(WindowpaneError):
    """Meaning cannot be measured."""

    code = "embedder_error"


class WeightsMissingError(EmbedderError):
    """No weights of the local model are installed."""

    code = "weights_missing"

    def __init__(self, looked_in: str) -> None:
        super().__init__(f"the weights of the local model are not installed (looked in {looked_in})")
        self.looked_in = looked_in


class WeightsDamagedError(EmbedderError):
    """The weights are there and cannot be used."""

    code = "weights_damaged"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"the weights in {where} are damaged: {why}")
        self.where = where


class EndpointError(EmbedderError):
    """The embeddings endpoint did not answer as it should."""

    code = "embedding_endpoint"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"the embeddings endpoint {url} failed: {why}")
        self.url = url


class ServerError(WindowpaneError):
    """A server of Windowpane did not do what it was asked to."""

    code = "server_error"


class RemoteError(ServerError):
    """The server refused. `remote_code` is the code of the error that it had."""

    code = "remote_error"

    def __init__(self, status: int, remote_code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.remote_code = remote_code


class UnreachableError(ServerError):
    """The server does not answer."""

    code = "unreachable"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"no server answers at {url}: {why}; `windowpane serve` starts one")
        self.url = url


class StoreError(WindowpaneError):
    """The store cannot do what was asked."""

    code = "store_error"


class StoreCorruptError(StoreError):
    """The database is damaged. It is left as it is."""

    code = "store_corrupt"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where} is damaged ({why}); nothing was changed. Restore a copy, or name another file.")
        self.where = where


class StoreTooNewError(StoreError):
    """The database was written by a newer version. It is left as it is."""

    code = "store_too_new"

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"{where} has schema {found} and this version knows {known}; nothing was changed. Update Windowpane."
        )
        self.where = where
        self.found = found
        self.known = known


class StoreRolledBackError(StoreError):
    """The store lost events that it had acknowledged, or the session was begun anew under its old id."""

    code = "store_rolled_back"

    def __init__(self, session_id: str, seen_seq: int, actual_seq: int) -> None:
        super().__init__(
            f"the log of session {session_id!r} is not the one that was seen up to {seen_seq}; it stands at "
            f"{actual_seq} now. The store lost its latest events, as when a replica takes over or a copy is restored, "
            "or the session was deleted and begun again. Look at the session before you go on: nothing was added."
        )
        self.session_id = session_id
        self.seen_seq = seen_seq
        self.actual_seq = actual_seq


class StoreUnavailableError(StoreError):
    """The store cannot be reached or written."""

    code = "store_unavailable"
