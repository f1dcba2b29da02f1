"""What every bus promises."""

from pathlib import Path

import anyio
import pytest

from bus.kinds import KEY, BusKind, BusServer
from bus.nats_server import NatsServer
from patience import PATIENCE_S
from windowpane.bus.base import LARGEST_MESSAGE, Bus
from windowpane.bus.nats import NatsBus
from windowpane.bus.sealed import SealedBus
from windowpane.context.ids import SessionId
from windowpane.errors import InvalidSettingError
from windowpane.stores.encrypted.keys import KeyRing

OTHER_KEY = "YW5vdGhlciBrZXkgdGhhdCB0ZXN0cyB3aWxsIHVzZS4="

ONE, OTHER = SessionId("one"), SessionId("another, with words: é ✓")

SEAL_BYTES = 28


class Hearer:
    """Hears one session on a bus, from when the bus has said that it does."""

    def __init__(self, bus: Bus, session_id: SessionId = ONE) -> None:
        self.heard: list[bytes] = []
        self._news = anyio.Event()
        self.end = bus.subscribe(session_id, self._hear)

    async def hears(self, *messages: bytes) -> None:
        """Wait until everything that was heard is this."""
        with anyio.fail_after(PATIENCE_S):
            while self.heard != list(messages):
                await self._news.wait()

    def _hear(self, message: bytes) -> None:
        self.heard.append(message)
        self._news.set()
        self._news = anyio.Event()


async def is_away(bus: Bus, *, away: bool = True) -> None:
    with anyio.fail_after(PATIENCE_S):
        while bool(bus.away) != away:  # noqa: ASYNC110 - a bus tells this to those who look
            await anyio.sleep(0.01)


async def test_what_one_process_says_about_a_session_all_hear_who_subscribed_to_it(
    kind: BusKind, server: BusServer
) -> None:
    async with kind.open(server.place) as here, kind.open(server.place) as there:
        mine, theirs, others = Hearer(here), Hearer(there), Hearer(there, OTHER)
        for hearer in (mine, theirs, others):
            await hearer.hears(b"")

        said = [f"{number} é".encode() for number in range(50)]
        for message in said:
            here.publish(ONE, message)
        here.publish(OTHER, b"\x00\xff last")

        await mine.hears(b"", *said)
        await theirs.hears(b"", *said)
        await others.hears(b"", b"\x00\xff last")


async def test_those_who_subscribe_in_one_process_each_hear_until_they_end_it(kind: BusKind, server: BusServer) -> None:
    async with kind.open(server.place) as bus:
        first = Hearer(bus)
        await first.hears(b"")
        second = Hearer(bus)
        await second.hears(b"")
        bus.publish(ONE, b"both")
        await first.hears(b"", b"both")
        await second.hears(b"", b"both")

        first.end()
        bus.publish(ONE, b"second alone")
        await second.hears(b"", b"both", b"second alone")
        second.end()
        second.end()
        third = Hearer(bus)
        await third.hears(b"")
        bus.publish(ONE, b"third alone")
        await third.hears(b"", b"third alone")

        assert first.heard == [b"", b"both"]
        assert second.heard == [b"", b"both", b"second alone"]


async def test_a_message_may_be_as_long_as_the_port_says_and_a_longer_one_is_left_out(
    kind: BusKind, server: BusServer
) -> None:
    room = LARGEST_MESSAGE - (SEAL_BYTES if kind.name.endswith("sealed") else 0)
    async with kind.open(server.place) as bus:
        hearer = Hearer(bus)
        await hearer.hears(b"")
        bus.publish(ONE, b"x" * (room + 1))
        bus.publish(ONE, b"y" * room)

        await hearer.hears(b"", b"y" * room)


async def test_a_bus_that_was_cut_off_says_so_and_comes_back_by_itself(kind: BusKind, server: BusServer) -> None:
    async with kind.open(server.place) as bus, kind.open(server.place) as other:
        hearer, far = Hearer(bus), Hearer(other)
        await hearer.hears(b"")
        await far.hears(b"")
        assert not bus.away

        server.kill()
        await is_away(bus)
        await is_away(other)
        bus.publish(OTHER, b"lost, or late: nobody waits")
        server.start()
        await is_away(bus, away=False)
        await is_away(other, away=False)
        await hearer.hears(b"", b"")
        await far.hears(b"", b"")
        bus.publish(ONE, b"again")

        await hearer.hears(b"", b"", b"again")
        await far.hears(b"", b"", b"again")


async def test_a_bus_that_was_never_there_holds_nothing_up(kind: BusKind, server: BusServer) -> None:
    server.kill()
    async with kind.open(server.place) as bus:
        hearer = Hearer(bus)
        bus.publish(ONE, b"lost")
        await is_away(bus)

        assert hearer.heard == []


async def test_what_was_said_before_a_bus_closes_is_heard(kind: BusKind, server: BusServer) -> None:
    async with kind.open(server.place) as listening:
        hearer = Hearer(listening)
        await hearer.hears(b"")
        async with kind.open(server.place) as brief:
            brief.publish(ONE, b"good-bye")

        await hearer.hears(b"", b"good-bye")


async def test_a_sealed_message_is_heard_by_those_alone_who_have_its_key_and_about_its_session(
    tmp_path: Path,
) -> None:
    server = NatsServer(tmp_path)
    server.start()
    old, new = (KeyRing.parse(key, "encryption_key") for key in (KEY, f"{OTHER_KEY},{KEY}"))
    try:
        async with NatsBus(server.place) as plain:
            hearing, turned = SealedBus(plain, old), SealedBus(plain, new)
            old_key, both_keys, without = Hearer(hearing), Hearer(turned), Hearer(plain)
            for hearer in (old_key, both_keys, without):
                await hearer.hears(b"")
            turned.publish(ONE, b"for the new key")
            hearing.publish(ONE, b"for the old key")

            await both_keys.hears(b"", b"for the new key", b"for the old key")
            await old_key.hears(b"", b"for the old key")
            assert all(b"key" not in message for message in without.heard)
            assert len(without.heard) == 3
            about_another = Hearer(hearing, OTHER)
            await about_another.hears(b"")
            plain.publish(OTHER, without.heard[2])
            hearing.publish(OTHER, b"end")
            await about_another.hears(b"", b"end")
    finally:
        server.stop()


@pytest.mark.parametrize("url", ["nats://", "nats://host/stream", "nats://host?queue=x"])
def test_a_url_that_says_what_nats_has_not_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettingError, match="bus_url: write nats://"):
        NatsBus(url)
