"""Which network addresses belong to the public internet.

An address is public only when nothing speaks against it: Python's own tables, a list of what those tables leave out,
and, for IPv6, that it is ordinary global unicast and not a wrapping in which an IPv4 address travels.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from windowpane.errors import InvalidSettingError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NEVER_PUBLIC: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; some clouds keep their metadata here
        "127.0.0.0/8",
        "168.63.129.16/32",  # the platform address of one cloud, public by its number only
        "169.254.0.0/16",  # link-local, where most clouds keep their metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "2001::/23",  # Teredo, benchmarking, ORCHID
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
    )
)
GLOBAL_UNICAST = IPv6Network("2000::/3")
"""Outside lie loopback, link-local, unique local, multicast, and the mapped, compatible and NAT64 forms of IPv4."""


@dataclass(frozen=True, slots=True)
class Exemption:
    """A network that may be fetched from although it is not public, on one port or, with `None`, on the usual ones."""

    network: Network
    port: int | None = None


def is_public(address: Address) -> bool:
    """Tell whether an address is one that the whole internet can reach."""
    if isinstance(address, IPv6Address) and (address.scope_id is not None or address not in GLOBAL_UNICAST):
        return False
    listed = any(address.version == network.version and address in network for network in NEVER_PUBLIC)
    return address.is_global and not address.is_multicast and not listed


def is_exempt(address: Address, port: int, exemptions: Iterable[Exemption], usual_ports: frozenset[int]) -> bool:
    """Tell whether an address may be used on this port although it is not public."""
    return any(
        address.version == exemption.network.version
        and address in exemption.network
        and (port in usual_ports if exemption.port is None else port == exemption.port)
        for exemption in exemptions
    )


def exemption(text: str) -> Exemption:
    """Return what `10.0.0.0/8`, `127.0.0.1:8080` or `[::1]:8080` stands for.

    Raises:
        InvalidSettingError: it is none of these.
    """
    network, port = text.strip(), ""
    if network.startswith("[") or network.count(":") == 1:
        network, _, port = network.rpartition(":")
    try:
        return Exemption(ip_network(network.removeprefix("[").removesuffix("]")), _port(port))
    except ValueError:
        why = f"{text!r} is neither a network such as 10.0.0.0/8 nor an address with a port such as 127.0.0.1:8080"
        raise InvalidSettingError("fetch_allow", why) from None


def _port(digits: str) -> int | None:
    if digits and not (digits.isascii() and digits.isdigit() and 0 < int(digits) < 2**16):
        raise ValueError(digits)
    return int(digits) if digits else None


def literal(host: str) -> Address | None:
    """Return the address that a host spells out, or None when it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
