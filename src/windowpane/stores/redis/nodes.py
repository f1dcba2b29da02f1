"""Which server a key is on, and patience with servers that are away for a moment.

A command is tried again when its connection breaks, when a server is loading its data, or when another server took
over, until patience runs out. The caller is told when its command is given again, because the first time may have been
done. That is why routing is here and not left to redis-py's cluster client: it repeats commands without saying so, and
it sends ASKING on another connection than the command that needs it.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    MovedError,
    NoScriptError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)

from windowpane.errors import StoreUnavailableError
from windowpane.errors.stores import NO_ANSWER
from windowpane.stores.redis.connection import Connector
from windowpane.stores.redis.pipeline import Command, ConnectionLostError, Pipeline, Reply
from windowpane.stores.redis.scripts import BODIES
from windowpane.stores.redis.url import HostPort, RedisUrl

Commands = Callable[[bool], Sequence[Command]]
"""What to send; given whether it was sent before and may have been done."""

_READERS = 4
_FIRST_WAIT_S = 0.02
_LONGEST_WAIT_S = 0.5
_PASSING = (AskError, ClusterDownError, MovedError, ReadOnlyError, TryAgainError)
"""Refusals that another attempt may not meet."""

_PASSING_WORDS = ("BUSY ", "FAILOVER", "NOREPLICAS", "UNBLOCKED")
"""How such refusals begin that redis-py has no class for."""


class Node:
    """One server: a pipeline for what changes something, and a few for what only reads.

    Changes have a pipeline of their own because the server answers in order: a read behind them would wait for the
    disk.
    """

    def __init__(self, connector: Connector, address: HostPort, answer_s: float) -> None:
        self._writer, *self._readers = [Pipeline(connector.connection(address), answer_s) for _ in range(1 + _READERS)]
        self._next_reader = 0

    def pipeline(self, *, reads: bool) -> Pipeline:
        if not reads:
            return self._writer
        idle = next((pipeline for pipeline in self._readers if not pipeline.busy), None)
        if idle is None:
            self._next_reader = (self._next_reader + 1) % _READERS
        return idle or self._readers[self._next_reader]

    def renew(self) -> None:
        """Connect again before the next command."""
        for pipeline in (self._writer, *self._readers):
            pipeline.renew()

    async def close(self) -> None:
        for pipeline in (self._writer, *self._readers):
            await pipeline.close()


class Nodes:
    """Every server that a URL names or leads to."""

    def __init__(self, url: RedisUrl, connector: Connector, *, answer_s: float) -> None:
        self._url = url
        self._connector = connector
        self._answer_s = answer_s
        self._nodes: dict[HostPort, Node] = {}
        self._slots: list[tuple[int, int, HostPort]] = []
        self._refreshing: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self, patience_s: float) -> None:
        """See that the servers answer.

        Raises:
            StoreUnavailableError: they do not.
        """
        if self._url.is_cluster:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    while not self._slots:
                        await self.refresh_slots()
                        if not self._slots:
                            await asyncio.sleep(_FIRST_WAIT_S)
            if not self._slots:
                raise StoreUnavailableError(f"no server of a cluster answers at {self._url}; is cluster mode on?")
        for address in self.primaries:
            # On the pipeline for changes, so that the first one finds it open.
            await self.run_at(address, (b"PING",), reads=False, patience_s=patience_s)

    async def close(self) -> None:
        """Disconnect from all servers."""
        self._closed = True
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])
        for node in self._nodes.values():
            await node.close()

    @property
    def primaries(self) -> list[HostPort]:
        """Return the servers that hold data."""
        if not self._url.is_cluster:
            return [self._url.hosts[0]]
        return sorted({address for _, _, address in self._slots}, key=str)

    def address(self, key: bytes) -> HostPort:
        """Return the server that holds a key."""
        if self._url.is_cluster:
            slot = key_slot(key)
            for first, last, address in self._slots:
                if first <= slot <= last:
                    return address
        return self._url.hosts[0]

    async def run(self, key: bytes, commands: Commands | Command, *, reads: bool = False) -> list[Reply]:
        """Return the replies to commands about one key, or about keys with the same tag.

        Raises:
            StoreUnavailableError: the server refuses, or was away for too long.
        """
        return await self._run(lambda: self.address(key), commands, reads, self._url.patience_s)

    async def run_at(
        self, address: HostPort, command: Command, *, reads: bool = True, patience_s: float | None = None
    ) -> Reply:
        """Return one server's reply to a command about itself.

        Raises:
            StoreUnavailableError: the server refuses, or was away for too long.
        """
        (reply,) = await self._run(lambda: address, command, reads, patience_s or self._url.patience_s)
        return reply

    async def refresh_slots(self) -> None:
        """Ask which server of a cluster has what. Callers who ask at the same time share one answer."""
        if not self._url.is_cluster:
            return
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._ask_for_slots())
        await asyncio.wait([self._refreshing])

    async def _run(
        self, where: Callable[[], HostPort], commands: Commands | Command, reads: bool, patience_s: float
    ) -> list[Reply]:
        deadline = asyncio.get_running_loop().time() + patience_s
        wait_s = _FIRST_WAIT_S
        attempted = with_bodies = False
        while True:
            if self._closed:
                raise StoreUnavailableError("the store is closed")
            address = where()
            words = commands(attempted) if callable(commands) else [commands]
            try:
                replies = await self._send(address, _with_bodies(words) if with_bodies else words, reads)
            except ConnectionLostError as error:
                trouble: Exception = error
                attempted = True
            else:
                refused = next((reply for reply in replies if isinstance(reply, ResponseError)), None)
                if refused is None:
                    return replies
                trouble = refused
            if isinstance(trouble, NoScriptError):
                with_bodies = True
                continue
            if not _passes(trouble):
                raise StoreUnavailableError(f"Redis at {address} refuses: {_said(trouble)}") from None
            if asyncio.get_running_loop().time() + wait_s > deadline:
                raise StoreUnavailableError(
                    f"Redis at {address} does not answer ({_said(trouble)}); tried for {patience_s:g} s. {NO_ANSWER}"
                ) from None
            if isinstance(trouble, ReadOnlyError):
                # The server was a primary when we connected; its name may lead to another one by now.
                self._node(address).renew()
            # A slot that moved is elsewhere already, so its first retry need not wait.
            if not (isinstance(trouble, MovedError) and wait_s == _FIRST_WAIT_S):
                await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
            await self.refresh_slots()

    async def _send(self, address: HostPort, words: Sequence[Command], reads: bool) -> list[Reply]:
        replies = await self._node(address).pipeline(reads=reads).send(words)
        for number, reply in enumerate(replies):
            # MOVED is an AskError too, by class: it says that the whole slot is elsewhere.
            if isinstance(reply, AskError) and not isinstance(reply, MovedError):
                # This key alone is on another server already, while its slot moves.
                pipeline = self._node(_named_by(reply)).pipeline(reads=reads)
                _, replies[number] = await pipeline.send([(b"ASKING",), words[number]])
        return replies

    def _node(self, address: HostPort) -> Node:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = Node(self._connector, address, self._answer_s)
        return node

    async def _ask_for_slots(self) -> None:
        """Ask one server after the other until one knows the cluster."""
        for address in dict.fromkeys((*self.primaries, *self._url.hosts, *self._nodes)):
            try:
                async with asyncio.timeout(self._answer_s):
                    (reply,) = await self._node(address).pipeline(reads=True).send([(b"CLUSTER", b"SLOTS")])
            except (ConnectionLostError, TimeoutError):
                continue
            if slots := _slots(reply, address):
                self._slots = slots
                return


def _named_by(reply: AskError) -> HostPort:
    """Return the server that an answer such as `3999 127.0.0.1:6381` names."""
    host, _, port = str(reply).rpartition(" ")[2].rpartition(":")
    return HostPort(host, int(port))


def _slots(reply: Reply, asked: HostPort) -> list[tuple[int, int, HostPort]]:
    """Return the ranges of slots, each with the server that holds it. An empty host is the one that was asked."""
    found: list[tuple[int, int, HostPort]] = []
    for one in reply if isinstance(reply, list) else []:
        match one:
            case [int(first), int(last), [bytes(host), int(port), *_], *_]:
                found.append((first, last, HostPort(host.decode() or asked.host, port)))
            case _:
                pass
    return found


def _with_bodies(words: Sequence[Command]) -> list[Command]:
    """Return the commands with whole scripts, for a server that does not remember them."""
    return [(b"EVAL", BODIES[word[1]], *word[2:]) if word[0] == b"EVALSHA" else word for word in words]


def _passes(trouble: Exception) -> bool:
    """Tell whether another attempt may go better."""
    if isinstance(trouble, ConnectionLostError):
        # Not every cause passes: a password stays wrong, and so does a database that does not exist.
        return not isinstance(trouble.__cause__, (AuthenticationError, ResponseError))
    return isinstance(trouble, _PASSING) or str(trouble).startswith(_PASSING_WORDS)


def _said(trouble: Exception) -> str:
    return str(trouble) or type(trouble).__name__
