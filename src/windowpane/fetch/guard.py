"""Keep fetches on the public internet.

A user or a model may choose an address that only this machine can reach. So every request, and every redirect, is
checked twice: its spelling before anything is sent, and its network address at the moment of connecting. A name is
resolved once and the connection goes to the very address that was checked, so a name that answers differently the
next time gains nothing. When one of its addresses is not public, all of them are refused.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from socket import SOCK_STREAM
from ssl import SSLContext
from typing import cast

import anyio
import httpcore2
import httpx2

from windowpane.errors import FetchRefusedError
from windowpane.fetch.addresses import Address, Exemption, is_exempt, is_public, literal
from windowpane.fetch.urls import SCHEMES, host_of, port_of, shown

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a host, best first. Raises OSError when there are none."""

USUAL_PORTS = frozenset({80, 443, 8000, 8080, 8443})
ATTEMPTS = 4
ATTEMPT_S = 5.0

HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
LAST_LABEL_IS_NUMBER = re.compile(r"(^|\.)([0-9]+|0x[0-9a-f]*)\.?$")


async def system_addresses(host: str, port: int) -> tuple[str, ...]:
    """Return what the operating system knows about a host."""
    answers = await anyio.getaddrinfo(host, port, type=SOCK_STREAM)
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in answers))


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Says which addresses may be fetched. `allow` names what may be in spite of not being public."""

    allow: tuple[Exemption, ...] = ()
    ports: frozenset[int] = USUAL_PORTS
    resolve: Resolver = system_addresses

    def check(self, url: httpx2.URL) -> None:
        """Look at the spelling of an address.

        Raises:
            FetchRefusedError: scheme, host or port are not those of a page on the public web.
        """
        if (why := self._why_not(url)) is not None:
            raise FetchRefusedError(shown(url), why)

    async def addresses(self, host: str, port: int) -> tuple[Address, ...]:
        """Return where a connection to this host may go, best first.

        Raises:
            FetchRefusedError: one of its addresses is not public.
            OSError: it has none.
        """
        spelled = literal(host.removesuffix("."))
        answers = [spelled] if spelled else [ip_address(answer) for answer in await self.resolve(host, port)]
        if not all(self._may_connect(address, port) for address in answers):
            raise FetchRefusedError(host, "its address is not on the public internet; `fetch_allow` can name it")
        if not answers:
            raise OSError(f"{host} has no address")
        return tuple(answers)

    def _why_not(self, url: httpx2.URL) -> str | None:
        host = host_of(url)
        if url.scheme not in SCHEMES:
            return "only http and https addresses are pages"
        if url.userinfo:
            return "it holds a user name or password; give the address without"
        if literal(host.removesuffix(".")) is None:
            if LAST_LABEL_IS_NUMBER.search(host):
                return "a number for a host must be written as four decimal numbers"
            if not HOST_NAME.fullmatch(host):
                return "its host is not a valid name"
        elif "%" in host:
            return "an address on a local network is not on the public internet"
        if port_of(url) not in self.ports | {exemption.port for exemption in self.allow}:
            return f"port {port_of(url)} is not one that pages are on; `fetch_allow` can name it, as ADDRESS:PORT"
        return None

    def _may_connect(self, address: Address, port: int) -> bool:
        usual = is_public(address) and port in self.ports
        return usual or is_exempt(address, port, self.allow, self.ports)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """HTTP over connections that only lead where the guard allows."""

    def __init__(self, guard: AddressGuard, ssl_context: SSLContext) -> None:
        self._guard = guard
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=ssl_context, network_backend=_GuardedNetwork(guard))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; a redirect comes here again as a request of its own."""
        self._guard.check(request.url)
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        sent = httpcore2.Request(request.method, url, headers=request.headers.raw, content=request.stream)
        with _as_transport_errors():
            answer = await self._pool.handle_async_request(sent)
        return httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _GuardedNetwork(httpcore2.AsyncNetworkBackend):
    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- the port of httpcore2 has it
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._guard.addresses(host, port)
        except (OSError, ValueError) as error:
            raise httpcore2.ConnectError(f"{host} has no address") from error
        failure: Exception | None = None
        for address in addresses[:ATTEMPTS]:
            try:
                # The address goes in as a number, so nothing is looked up again.
                return await self._network.connect_tcp(str(address), port, ATTEMPT_S, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise httpcore2.ConnectError(f"{host} does not accept a connection") from failure

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_transport_errors():
            async with aclosing(self._answer.aiter_stream()) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _as_transport_errors() -> Generator[None]:
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except httpcore2.ConnectError as error:
        raise httpx2.ConnectError(str(error)) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
        raise httpx2.ReadError(str(error)) from error
