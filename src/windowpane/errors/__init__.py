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
    │   ├── CallNotFoundError
    │   ├── BlobNotFoundError
    │   └── MissingFileError
    ├── AccessError                 the caller may not do this
    │   ├── TokenNeededError
    │   ├── ScopeNeededError
    │   ├── TooManyRequestsError
    │   ├── CostLimitError
    │   └── TokensUnreadableError
    ├── ConflictError               the state does not allow it, or changed meanwhile
    │   ├── SequenceConflictError
    │   ├── LeaseLostError
    │   ├── SessionBusyError
    │   ├── WorkerFullError
    │   ├── TooManyTurnsError
    │   ├── ApprovalPendingError
    │   ├── NoQuestionError
    │   ├── NothingToApproveError
    │   ├── NoResultAwaitedError
    │   ├── NoTurnRunningError
    │   ├── WrongSessionError
    │   ├── DifferentSessionError
    │   ├── AlreadyThereError
    │   ├── StaleRevisionError
    │   ├── RecordedSessionError
    │   └── KeyReusedError
    ├── AgentError                  the agent's folder cannot be used as it is
    │   ├── UnreadableAgentError
    │   └── MissingCorePromptError
    ├── ModelError                  the model call failed
    │   ├── UnknownModelError
    │   ├── ModelAuthError
    │   ├── ModelRateLimitedError
    │   ├── ModelRejectedError
    │   │   └── RequestTooLongError
    │   ├── ModelUnavailableError
    │   ├── ModelStreamBrokenError
    │   ├── ModelTimeoutError
    │   └── TooManyModelCallsError
    ├── ToolError                   a tool server or a tool call failed
    │   ├── ToolServerDownError
    │   └── ToolTimeoutError
    ├── FetchError                  a page or a web search failed
    │   ├── FetchRefusedError
    │   ├── FetchFailedError
    │   └── SearchEngineError
    ├── EmbedderError               embeddings are not available; words decide alone
    │   ├── WeightsMissingError
    │   ├── WeightsDamagedError
    │   └── EndpointError
    ├── ServerError                 a Windowpane server refused or did not answer
    │   ├── RemoteError
    │   └── UnreachableError
    └── StoreError                  the store cannot do its work
        ├── StoreCorruptError
        ├── StoreTooNewError
        ├── EncryptionKeyError
        │   ├── StoreEncryptedError
        │   ├── StoreNotEncryptedError
        │   └── WrongEncryptionKeyError
        ├── StoreRolledBackError
        └── StoreUnavailableError
            └── StoreReplacedError

Each class owns its message and carries the facts. `code` is the stable name in answers and records. The classes are
kept by branch: `requests` (the first three), `conflicts`, `models` (agents, models, tools), `services` and `stores`.
"""

from windowpane.errors.base import (
    WindowpaneError,
)
from windowpane.errors.conflicts import (
    AlreadyThereError,
    ApprovalPendingError,
    ConflictError,
    DifferentSessionError,
    KeyReusedError,
    LeaseLostError,
    NoQuestionError,
    NoResultAwaitedError,
    NothingToApproveError,
    NoTurnRunningError,
    RecordedSessionError,
    SequenceConflictError,
    SessionBusyError,
    StaleRevisionError,
    TooManyTurnsError,
    WorkerFullError,
    WrongSessionError,
)
from windowpane.errors.models import (
    AgentError,
    MissingCorePromptError,
    ModelAuthError,
    ModelError,
    ModelRateLimitedError,
    ModelRejectedError,
    ModelStreamBrokenError,
    ModelTimeoutError,
    ModelUnavailableError,
    RequestTooLongError,
    ToolError,
    ToolServerDownError,
    ToolTimeoutError,
    TooManyModelCallsError,
    UnknownModelError,
    UnreadableAgentError,
)
from windowpane.errors.requests import (
    AccessError,
    AgentNotFoundError,
    BlobNotFoundError,
    CallNotFoundError,
    ContextTooLargeError,
    CostLimitError,
    InvalidFileError,
    InvalidInputError,
    InvalidSettingError,
    MissingFileError,
    NotFoundError,
    RevisionMissingError,
    ScopeNeededError,
    SessionNotFoundError,
    TokenNeededError,
    TokenNotFoundError,
    TokensUnreadableError,
    TooManyRequestsError,
    TurnNotFoundError,
    UnknownItemError,
)
from windowpane.errors.services import (
    EmbedderError,
    EndpointError,
    FetchError,
    FetchFailedError,
    FetchRefusedError,
    RemoteError,
    SearchEngineError,
    ServerError,
    UnreachableError,
    WeightsDamagedError,
    WeightsMissingError,
)
from windowpane.errors.stores import (
    EncryptionKeyError,
    StoreCorruptError,
    StoreEncryptedError,
    StoreError,
    StoreNotEncryptedError,
    StoreReplacedError,
    StoreRolledBackError,
    StoreTooNewError,
    StoreUnavailableError,
    WrongEncryptionKeyError,
)

__all__ = [
    "AccessError",
    "AgentError",
    "AgentNotFoundError",
    "AlreadyThereError",
    "ApprovalPendingError",
    "BlobNotFoundError",
    "CallNotFoundError",
    "ConflictError",
    "ContextTooLargeError",
    "CostLimitError",
    "DifferentSessionError",
    "EmbedderError",
    "EncryptionKeyError",
    "EndpointError",
    "FetchError",
    "FetchFailedError",
    "FetchRefusedError",
    "InvalidFileError",
    "InvalidInputError",
    "InvalidSettingError",
    "KeyReusedError",
    "LeaseLostError",
    "MissingCorePromptError",
    "MissingFileError",
    "ModelAuthError",
    "ModelError",
    "ModelRateLimitedError",
    "ModelRejectedError",
    "ModelStreamBrokenError",
    "ModelTimeoutError",
    "ModelUnavailableError",
    "NoQuestionError",
    "NoResultAwaitedError",
    "NoTurnRunningError",
    "NotFoundError",
    "NothingToApproveError",
    "RecordedSessionError",
    "RemoteError",
    "RequestTooLongError",
    "RevisionMissingError",
    "ScopeNeededError",
    "SearchEngineError",
    "SequenceConflictError",
    "ServerError",
    "SessionBusyError",
    "SessionNotFoundError",
    "StaleRevisionError",
    "StoreCorruptError",
    "StoreEncryptedError",
    "StoreError",
    "StoreNotEncryptedError",
    "StoreReplacedError",
    "StoreRolledBackError",
    "StoreTooNewError",
    "StoreUnavailableError",
    "TokenNeededError",
    "TokenNotFoundError",
    "TokensUnreadableError",
    "TooManyModelCallsError",
    "TooManyRequestsError",
    "TooManyTurnsError",
    "ToolError",
    "ToolServerDownError",
    "ToolTimeoutError",
    "TurnNotFoundError",
    "UnknownItemError",
    "UnknownModelError",
    "UnreachableError",
    "UnreadableAgentError",
    "WeightsDamagedError",
    "WeightsMissingError",
    "WindowpaneError",
    "WorkerFullError",
    "WrongEncryptionKeyError",
    "WrongSessionError",
]
