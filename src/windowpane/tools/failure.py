"""Say in one sentence why a tool server could not be reached, so that a person knows what to repair."""

from typing import cast

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from windowpane.tools.base import ServerConfig
from windowpane.tools.transports import HTTP_REFUSED, NOT_SENT, TransportState


def why(error: BaseException, config: ServerConfig, watch: TransportState) -> str:
    """Return what went wrong while connecting or while connected."""
    match _leaf(error):
        case FileNotFoundError() | NotADirectoryError() as missing if config.cwd and missing.filename == config.cwd:
            return f"the folder {config.cwd!r} does not exist"
        case FileNotFoundError():
            return f"command {config.command!r} not found"
        case PermissionError():
            return f"command {config.command!r} may not be run"
        case MCPError(code=code, message=message) if code in (NOT_SENT, HTTP_REFUSED):
            return message
        case MCPError(code=code) if code == CONNECTION_CLOSED and config.url is None:
            return exited(watch)
        case MCPError(message=message):
            return f"it does not answer like an MCP server: {message}{watch.last_output}"
        case ValidationError() as invalid:
            return f"bad handshake: {invalid.error_count()} faults in {invalid.title}{watch.last_output}"
        case OSError() as failed:
            return failed.strerror or str(failed)
        case RuntimeError() as failed:
            return f"bad handshake: {failed}{watch.last_output}"
        case other:
            return f"{type(other).__name__}: {other}{watch.last_output}"


def exited(watch: TransportState) -> str:
    """Return that the process is gone, with its last output."""
    return f"it exited{watch.last_output}"


def too_slow(seconds: float, watch: TransportState) -> str:
    """Return that the server did not finish the handshake in time."""
    return f"no answer within {seconds:g} s{watch.last_output}"


def _leaf(error: BaseException) -> BaseException:
    """Return the first error inside nested groups: task groups wrap what one of their tasks raised."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
