"""Which server a key is on, and patience with servers that are away for a moment.

A command is tried again when its connection breaks, when a server is loading its data, or when another server took
over, until patience runs out. Whoever gives a command is told when it is given again, because the first time may have
been done.
"""

import asyncio
from binascii import crc_hqx
from collections.abc import Callable, Sequence
from contextlib import suppress

from hiredis import ReplyError

from windowpane.errors import StoreUnavailableError
from windowpane.stores.redis.connection import Link
from windowpane.stores.redis.protocol import Address, Command, ConnectionLostError, Reply, refusal
from windowpane.stores.redis.scripts import BODIES
from windowpane.stores.redis.url import Place

Commands = Callable[[bool], Sequence[Command]]
"""What to send; given whether it was sent before and may have been done."""

_READERS = 4
_FIRST_WAIT_S = 0.02
_LONGEST_WAIT_S = 0.5
_SLOTS = 16384
_PASSING = (
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "ERR max number of clients",
    "FAILOVER",
    "LOADING",
    "MASTERDOWN",
    "MOVED",
    "NOREPLICAS",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
)
"""How refusals begin that another attempt may not meet."""


class Node:
    """One server: a link for what changes something, and a few for what only reads."""

    def __init__(self, place: Place, address: Address, answer_s: float) -> None:
        self.address = address
        self._writer, *self._readers = [Link(lambda: place.connect(address, answer_s)) for _ in range(1 + _READERS)]
        self._turn = 0

    def link(self, *, reads: bool) -> Link:
        if not reads:
            return self._writer
        idle = next((link for link in self._readers if not link.busy), None)
        if idle is None:
            self._turn = (self._turn + 1) % _READERS
        return idle or self._readers[self._turn]

    def renew(self) -> None:
        """Connect anew before the next command."""
        for link in (self._writer, *self._readers):
            link.renew()

    async def close(self) -> None:
        for link in (self._writer, *self._readers):
            await link.close()


class Nodes:
    """Every server that a place names."""

    def __init__(self, place: Place, *, patience_s: float, answer_s: float) -> None:
        self._place = place
        self._patience_s = patience_s
        self._answer_s = answer_s
        self._nodes: dict[Address, Node] = {}
        self._slots: list[tuple[int, int, Address]] = []
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self, patience_s: float) -> None:
        """See that the servers answer.

        Raises:
            StoreUnavailableError: they do not.
        """
        if self._place.cluster:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    while not self._slots:
                        await self.look_again()
                        if not self._slots:
                            await asyncio.sleep(_FIRST_WAIT_S)
            if not self._slots:
                raise StoreUnavailableError(f"no server of a cluster answers at {self._place}; is cluster mode on?")
        for address in self.primaries:
            # On the link for changes, so that the first one finds it open.
            await self.run_at(address, (b"PING",), reads=False, patience_s=patience_s)

    async def close(self) -> None:
        """Disconnect from all servers."""
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        for node in self._nodes.values():
            await node.close()

    @property
    def are_many(self) -> bool:
        """Whether keys are spread over several servers."""
        return self._place.cluster

    @property
    def primaries(self) -> list[Address]:
        """Return the servers that hold data."""
        if not self._place.cluster:
            return [self._place.seeds[0]]
        return sorted({address for _, _, address in self._slots}, key=str)

    def address(self, key: bytes) -> Address:
        """Return the server that holds a key."""
        if self._place.cluster:
            slot = _slot(key)
            for first, last, address in self._slots:
                if first <= slot <= last:
                    return address
        return self._place.seeds[0]

    async def run(self, key: bytes, commands: Commands | Command, *, reads: bool = False) -> list[Reply]:
        """Return the replies to commands about one key, or about keys with the same tag.

        Raises:
            StoreUnavailableError: the server refuses, or was away for too long.
        """
        return await self._run(lambda: self.address(key), commands, reads, self._patience_s)

    async def run_at(
        self, address: Address, command: Command, *, reads: bool = True, patience_s: float | None = None
    ) -> Reply:
        """Return one server's reply to a command about itself.

        Raises:
            StoreUnavailableError: the server refuses, or was away for too long.
        """
        (reply,) = await self._run(lambda: address, command, reads, patience_s or self._patience_s)
        return reply

    async def look_again(self) -> None:
        """Ask which server of a cluster has what. Those who ask at the same time share one answer."""
        if not self._place.cluster:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.wait([self._looking])

    async def _run(
        self, where: Callable[[], Address], commands: Commands | Command, reads: bool, patience_s: float
    ) -> list[Reply]:
        deadline = asyncio.get_running_loop().time() + patience_s
        wait_s = _FIRST_WAIT_S
        attempted = whole = False
        while True:
            if self._closed:
                raise StoreUnavailableError("the store is closed")
            address = where()
            words = commands(attempted) if callable(commands) else [commands]
            try:
                replies = await self._send(address, _with_body(words) if whole else words, reads)
            except ConnectionLostError as error:
                # Not all causes pass: a password stays wrong.
                trouble: Exception = error.__cause__ if isinstance(error.__cause__, ReplyError) else error
                attempted = True
            else:
                refused = refusal(replies)
                if refused is None:
                    return replies
                trouble = refused
            if _begins(trouble, "NOSCRIPT"):
                whole = True
                continue
            if not isinstance(trouble, ConnectionLostError) and not _begins(trouble, *_PASSING):
                raise _in_our_words(address, trouble) from None
            if asyncio.get_running_loop().time() + wait_s > deadline:
                raise StoreUnavailableError(
                    f"Redis at {address} does not answer ({_plain(trouble)}); tried for {patience_s:g} s. "
                    "What was being stored may be stored or not: ask again with the same key."
                ) from None
            if _begins(trouble, "READONLY"):
                # The server was a primary when we connected; its name may lead to another one by now.
                self._node(address).renew()
            if not (_begins(trouble, "MOVED") and wait_s == _FIRST_WAIT_S):
                await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
            await self.look_again()

    async def _send(self, address: Address, words: Sequence[Command], reads: bool) -> list[Reply]:
        replies = await self._node(address).link(reads=reads).send(words)
        for number, reply in enumerate(replies):
            if isinstance(reply, ReplyError) and _begins(reply, "ASK "):
                # This key alone is on another server already, while its slot moves.
                link = self._node(_named(reply)).link(reads=reads)
                _, replies[number] = await link.send([(b"ASKING",), words[number]])
        return replies

    def _node(self, address: Address) -> Node:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = Node(self._place, address, self._answer_s)
        return node

    async def _look(self) -> None:
        """Ask one server after the other until one knows the cluster."""
        for address in dict.fromkeys((*self.primaries, *self._place.seeds, *self._nodes)):
            try:
                async with asyncio.timeout(self._answer_s):
                    (reply,) = await self._node(address).link(reads=True).send([(b"CLUSTER", b"SLOTS")])
            except (ConnectionLostError, TimeoutError):
                continue
            if slots := _slots(reply, address):
                self._slots = slots
                return


def _slot(key: bytes) -> int:
    """Return the part of a cluster that a key belongs to: by its first tag, if it has one."""
    _, opened, rest = key.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return crc_hqx(tag if opened and closed and tag else key, 0) % _SLOTS


def _named(reply: ReplyError) -> Address:
    """Return the server that an answer such as `ASK 3999 127.0.0.1:6381` names."""
    host, _, port = str(reply).rpartition(" ")[2].rpartition(":")
    return Address(host, int(port))


def _slots(reply: Reply, asked: Address) -> list[tuple[int, int, Address]]:
    """Return the ranges of slots, each with the server that holds it. An empty host is the one that was asked."""
    found: list[tuple[int, int, Address]] = []
    for one in reply if isinstance(reply, list) else []:
        match one:
            case [int(first), int(last), [bytes(host), int(port), *_], *_]:
                found.append((first, last, Address(host.decode() or asked.host, port)))
            case _:
                pass
    return found


def _with_body(words: Sequence[Command]) -> list[Command]:
    """Return the commands with whole scripts, for a server that does not remember them."""
    return [(b"EVAL", BODIES[word[1]], *word[2:]) if word[0] == b"EVALSHA" else word for word in words]


def _begins(trouble: Exception, *words: str) -> bool:
    return isinstance(trouble, ReplyError) and str(trouble).startswith(words)


def _in_our_words(address: Address, trouble: Exception) -> StoreUnavailableError:
    return StoreUnavailableError(f"Redis at {address} refuses: {_plain(trouble)}")


def _plain(trouble: Exception) -> str:
    return str(trouble) or type(trouble).__name__
