"""The ordinary server passes `/xray/{provider}/…` on, for callers with a token, as sessions of theirs."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import anyio
import httpx2

from server.place import engine_of, listening, served
from windowpane.api.sessions import SessionView
from windowpane.callers import TokenFile
from windowpane.client import Client
from windowpane.context.events import Recorded
from windowpane.server.app import create_app
from windowpane.testing import World
from windowpane.xray.app import XrayApp
from wire import anthropic_messages
from wire.reply import WireReply
from wire.server import running

HI = anthropic_messages.answer(WireReply(text=("Hi.",)))
ASKED = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello?"}]}
KEY = {"x-api-key": "sk-planted-key-0123456789"}


async def test_calls_need_a_token_of_their_own_and_belong_to_its_owner(world: World, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    _, secret = tokens.create("ann", ("read", "chat"))
    _, reader = tokens.create("bob", ("read",))
    async with (
        running(HI) as server,
        served(world, tokens=tokens, token_needed=True, upstreams={"anthropic": server.url}, hosts=None) as http,
    ):
        url = "/xray/anthropic/v1/messages?beta=true"
        without = await http.post(url, json=ASKED, headers={**KEY, "authorization": f"Bearer {secret}"})
        weak = await http.post(url, json=ASKED, headers={**KEY, "x-windowpane-token": reader})
        local = await http.post("/xray/ollama/api/chat", json=ASKED, headers={"x-windowpane-token": secret})
        passed = await http.post(url, json=ASKED, headers={**KEY, "x-windowpane-token": secret})
        async with Client(str(http.base_url), token=secret) as pane:
            session, types = await _recorded(pane)
            report = await pane.sessions.xray(session.id)

        async def status(token: str) -> dict[str, object]:
            return (await http.get("/api/xray", headers={"authorization": f"Bearer {token}"})).json()

        while not (mine := await status(secret))["recorded"]:  # noqa: ASYNC110 - it is counted after it is stored
            await anyio.sleep(0.01)
        theirs = await status(reader)

    assert [(told["recorded"], told["lost"]) for told in (mine, theirs)] == [(1, {}), (0, {})]
    assert [answer.status_code for answer in (without, weak, local, passed)] == [401, 403, 404, 200]
    assert set(passed.headers) - {"date", "server"} == {"content-type", "transfer-encoding"}
    assert [asked.path for asked in server.asked] == ["/v1/messages?beta=true"]
    assert "x-windowpane-token" not in server.asked[0].headers
    assert (session.owner, session.agent, session.title) == ("ann", "xray:python-httpx2", "Hello?")
    assert types == ["session.created", "turn.started", "call.sent", "call.ended", "model.replied", "turn.finished"]
    (sent,) = report.calls
    assert [(share.kind, share.parts, share.tokens) for share in sent.kinds] == [("message", 1, 11), ("setting", 2, 0)]
    assert [(part.kind, part.name) for part in report.parts] == [
        ("setting", "model"),
        ("setting", "max_tokens"),
        ("message", ""),
    ]


async def _recorded(pane: Client) -> tuple[SessionView, list[str]]:
    """Return the session that is being recorded, and what a watcher sees of it until its turn ends."""
    while not (found := (await pane.sessions.list()).sessions):  # noqa: ASYNC110 - the list tells it
        await anyio.sleep(0.01)
    types: list[str] = []
    async with aclosing(pane.watch(found[0].id, after=0)) as events:
        async for event in events:
            if isinstance(event, Recorded):
                types.append(event.event.type)
            if types and types[-1] == "turn.finished":
                break
    return await pane.sessions.get(found[0].id), types


async def test_a_large_body_passes_and_a_page_of_another_site_does_not(world: World) -> None:
    async with running(HI, HI) as server, served(world, upstreams={"anthropic": server.url}) as http:
        large = {**ASKED, "messages": [{"role": "user", "content": "x" * 5_000_000}]}
        passed = await http.post("/xray/anthropic/v1/messages", json=large)
        foreign = await http.post("/xray/anthropic/v1/messages", json=ASKED, headers={"origin": "https://evil.example"})
        read = await http.get("/xray/anthropic/v1/models", headers={"sec-fetch-site": "cross-site"})

    assert [passed.status_code, foreign.status_code, read.status_code, len(server.asked)] == [200, 403, 403, 1]


async def test_calls_that_are_lost_are_counted_and_shown(world: World) -> None:
    async with running(HI, HI) as server:
        app = create_app(engine_of(world), upstreams={"anthropic": server.url})
        proxy: XrayApp = app.state.xray
        async with listening(app) as url, httpx2.AsyncClient(base_url=url, timeout=None) as http:
            await http.post("/xray/anthropic/v1/messages", json=ASKED)
            await proxy.recorder.settled()
            proxy.recorder.room.most_bytes = 10
            passed = await http.post("/xray/anthropic/v1/messages", json=ASKED)
            await proxy.recorder.settled()
            status = (await http.get("/api/xray")).json()
            numbers = (await http.get("/metrics")).text

    assert passed.status_code == 200
    assert status == {"providers": list(proxy.providers), "recorded": 1, "lost": {"full": 1}}
    assert "anthropic" in status["providers"]
    assert 'windowpane_xray_calls_total{outcome="full"} 1.0' in numbers
    assert 'windowpane_xray_calls_total{outcome="recorded"} 1.0' in numbers
