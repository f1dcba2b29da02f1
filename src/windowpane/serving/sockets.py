"""Listen at an address."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager

from windowpane.errors import InvalidSettingError


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Listen until the block ends.

    Raises:
        InvalidSettingError: there is no such address, or it is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        said = f"cannot listen on {host} port {port}: {why}; choose another: --port, or WINDOWPANE_PORT"
        raise InvalidSettingError("port", said) from None
    with listener:
        # Connections inherit it. The event loop would set it too, but not on a socket that was made like this one, and
        # without it the second half of every answer waits 40 ms for the client to confirm the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def address_of(listener: socket.socket) -> str:
    """Return where a listener can be reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
