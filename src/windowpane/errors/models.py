"""Errors of agents, model calls and tool calls."""

from windowpane.errors.base import WindowpaneError


class AgentError(WindowpaneError):
    """The agent's folder cannot be used as it is."""

    code = "agent_error"


class UnreadableAgentError(AgentError):
    """The agent's `agent.yaml` cannot be read, so that it is not known which model answers and what it may do."""

    code = "unreadable_agent"

    def __init__(self, agent: str, file: str, line: int | None, reason: str) -> None:
        place = f"{file}, line {line}" if line else file
        super().__init__(
            f"agent {agent!r} cannot answer: {place}: {reason}; correct the file, and the next message is answered"
        )
        self.agent = agent
        self.file = file
        self.line = line


class MissingCorePromptError(AgentError):
    """The agent has no core prompt, and cannot start without one."""

    code = "missing_core_prompt"

    def __init__(self, agent: str, path: str) -> None:
        super().__init__(
            f"agent {agent!r} has no core prompt: write {path} and state who the agent is, "
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
    """The model's name is not known, or its provider is not set up."""

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
    """The provider understood the request and refused it. `status` is its HTTP status, where it gave one."""

    code = "model_rejected"

    def __init__(self, message: str, *, partial: str = "", status: int | None = None) -> None:
        super().__init__(message, partial=partial)
        self.status = status


class RequestTooLongError(ModelRejectedError):
    """The provider refused the request because it is longer than the model's window.

    `reported_tokens` is how long it is by the provider's count, `window_tokens` how long it may be; None where the
    provider did not say.
    """

    code = "request_too_long"

    def __init__(self, message: str, *, reported_tokens: int | None = None, window_tokens: int | None = None) -> None:
        super().__init__(message)
        self.reported_tokens = reported_tokens
        self.window_tokens = window_tokens


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
