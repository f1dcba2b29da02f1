"""Ports for servers that tests start and start again, below those that outgoing connections take meanwhile."""

import socket
from contextlib import suppress
from random import SystemRandom

_CLUSTER_BUS = 10_000
"""A server of a Redis cluster listens at its port plus this as well."""


def free_port() -> int:
    """Return a port on which, and on whose cluster bus, nobody listens."""
    while True:
        port = SystemRandom().randrange(10_000, 22_000)
        with socket.socket() as one, socket.socket() as bus, suppress(OSError):
            one.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + _CLUSTER_BUS))
            return port
