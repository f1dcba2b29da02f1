"""A bus as operators see it: the setting, `windowpane doctor`, `/readyz` and metrics."""

from pathlib import Path

import anyio
import httpx2
import pytest

from bus.nats_server import NatsServer
from patience import PATIENCE_S
from windowpane.cli.doctor.checks import Finding, examine
from windowpane.errors import InvalidSettingError
from windowpane.models.scripted import Reply, ScriptedModel
from windowpane.settings import Settings
from windowpane.testing import World, serving
from windowpane.wiring import open_bus, open_engine


def of(folder: Path, bus_url: str) -> Settings:
    World(folder / "agents")
    return Settings(data=folder, bus_url=bus_url, port=0, store_url="memory:")


async def found(settings: Settings) -> Finding:
    async for finding in examine(settings, ask=False, wait_s=0):
        if finding.subject == "bus":
            return finding
    raise AssertionError


async def test_doctor_says_whether_the_bus_carries_messages(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    settings = of(tmp_path, server.place)
    away = await found(settings)
    server.start()
    there = await found(settings)
    server.stop()

    assert (away.health, away.detail.partition(": ")[0]) == ("doubtful", server.place)
    assert there == Finding("bus", "good", f"{server.place} carries messages")


async def test_doctor_says_that_a_bus_url_cannot_be_used(tmp_path: Path) -> None:
    finding = await found(of(tmp_path, "amqp://me:secret@host"))

    assert (finding.health, finding.advice) == ("broken", "correct this setting")
    assert finding.detail == ("bus_url: 'amqp://me:…@host' names no bus; write nats://host:4222 or redis://host:6379/0")


@pytest.mark.parametrize("url", ["", "nats", "http://host", "redis://host/0?color=blue"])
def test_a_url_that_names_no_bus_is_refused_before_anything_is_opened(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"^bus_url: "):
        open_engine(of(tmp_path, url))
    with pytest.raises(InvalidSettingError, match=r"^bus_url: "):
        open_bus(url)


async def test_a_turn_runs_while_the_bus_is_away_and_the_server_says_so(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    script = ScriptedModel("test", [Reply("Hello.")])
    async with (
        serving(of(tmp_path, server.place), script) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE_S) as client,
    ):
        before = (await client.get("/readyz")).json()
        session = (await client.post("/api/sessions", json={"agent": "pane"})).json()["id"]
        turn = await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        with anyio.fail_after(PATIENCE_S):
            while (ready := (await client.get("/readyz")).json())["bus"] != "away":  # noqa: ASYNC110 - over HTTP
                await anyio.sleep(0.01)
        metrics = (await client.get("/metrics")).text.splitlines()

    assert before == {"status": "ready", "bus": "up"}
    assert (turn.status_code, turn.json()["outcome"]) == (200, "completed")
    assert ready == {"status": "ready", "bus": "away"}
    assert "windowpane_bus_cuts_total 1.0" in metrics
