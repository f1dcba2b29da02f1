"""What a server's settings promise about a write that it acknowledged."""

from dataclasses import dataclass
from typing import Literal

from windowpane.errors import StoreUnavailableError
from windowpane.stores.redis.nodes import Nodes
from windowpane.stores.redis.pipeline import Reply
from windowpane.stores.redis.url import HostPort

AppendFsync = Literal["always", "everysec", "no", "off", "unknown"]
"""When the server's append-only file reaches the disk; "off": there is none; "unknown": the server does not tell."""

_WORST_FIRST: tuple[AppendFsync, ...] = ("off", "unknown", "no", "everysec", "always")
_LOSES: dict[AppendFsync, str] = {
    "always": "an acknowledged write survives a kill and a power cut",
    "everysec": "a kill can lose the last two seconds while the disk is busy, a power cut always",
    "no": "a kill can lose what the server had not written yet, a power cut what the system had not, often 30 s",
    "off": "a restart loses what was acknowledged since the last snapshot, or everything",
    "unknown": "the server does not tell when its append-only file reaches the disk",
}


@dataclass(frozen=True, slots=True)
class Durability:
    """The weakest promise among the servers."""

    appendfsync: AppendFsync
    evicts: bool
    """Tells whether the server removes keys of its own choice when its memory is full."""
    replicas: int
    """How many replicas the server with the fewest has. They are told after the write is acknowledged."""

    @property
    def keeps(self) -> bool:
        """Tell whether a restart keeps what was acknowledged."""
        return self.appendfsync != "off" and not self.evicts

    def __str__(self) -> str:
        said = [f"appendfsync {self.appendfsync}: {_LOSES[self.appendfsync]}"]
        if self.evicts:
            said.append("the server removes keys when its memory is full (set maxmemory-policy noeviction)")
        if self.replicas:
            said.append("a replica that takes over can miss the last writes that were acknowledged")
        return "; ".join(said)


async def read_durability(nodes: Nodes) -> Durability:
    """Ask every server.

    Raises:
        StoreUnavailableError: a server does not answer.
    """
    each = [await _of_server(nodes, address) for address in nodes.primaries]
    return Durability(
        appendfsync=min(each, key=lambda one: _WORST_FIRST.index(one.appendfsync)).appendfsync,
        evicts=any(one.evicts for one in each),
        replicas=min(one.replicas for one in each),
    )


async def _of_server(nodes: Nodes, address: HostPort) -> Durability:
    said = _info(await nodes.run_at(address, (b"INFO",)))
    try:
        asked = await nodes.run_at(address, (b"CONFIG", b"GET", b"appendfsync"))
    except StoreUnavailableError:
        # Rented servers often keep their settings to themselves.
        asked = None
    return Durability(
        appendfsync="off" if said.get("aof_enabled") != "1" else _appendfsync(asked),
        evicts=said.get("maxmemory", "0") != "0" and said.get("maxmemory_policy", "noeviction") != "noeviction",
        replicas=int(said.get("connected_slaves", "0")),
    )


def _info(reply: Reply) -> dict[str, str]:
    text = reply.decode() if isinstance(reply, bytes) else ""
    return {name: value for name, _, value in (line.partition(":") for line in text.splitlines())}


def _appendfsync(reply: Reply) -> AppendFsync:
    match reply:
        case [b"appendfsync", b"always"]:
            return "always"
        case [b"appendfsync", b"everysec"]:
            return "everysec"
        case [b"appendfsync", b"no"]:
            return "no"
        case _:
            return "unknown"
