"""The door for MCP hosts, seen by a real client: over the pipes of a process, and over HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import IncomingMessage, MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ServerEvent
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp.types import CallToolResult, ResourceUpdatedNotification, TextContent, TextResourceContents

from forked import forked
from mcp_process import serve
from patience import PATIENCE_S
from windowpane.callers import TokenFile
from windowpane.context.events import ItemAdded, SessionContext, SessionItem
from windowpane.context.ids import SessionId
from windowpane.context.items import reference_ref
from windowpane.engine import Engine
from windowpane.errors import InvalidSettingError
from windowpane.mcp_server.run import run_mcp
from windowpane.mcp_server.server import create_server
from windowpane.serving.protocol import MAX_HEAD_BYTES
from windowpane.settings import Settings
from windowpane.wiring import open_engine

pytestmark = pytest.mark.anyio

RUN = """
import sys
from pathlib import Path
from windowpane.mcp_server.run import run_mcp
from windowpane.settings import Settings

run_mcp(Settings(data=Path(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return written(tmp_path_factory.mktemp("open"))


@pytest.fixture(scope="module")
def url(settings: Settings) -> Generator[str]:
    """The address of a server that needs no token."""
    with over_http(settings) as url:
        yield url


def written(folder: Path) -> Settings:
    agent = folder / "agents" / "pane"
    for name, text in {
        "agent.yaml": "model: echo\nworking_context: false\nfinders: false\n",
        "prompts/core.md": "You are Pane.",
        "rules/tone.md": "---\ninclude: always\n---\nBe kind.",
        "references/atlas.md": "---\ninclude: agent\ndescription: Rivers and mountains\n---\nThe Danube is long.",
    }.items():
        (agent / name).parent.mkdir(parents=True, exist_ok=True)
        (agent / name).write_text(text)
    return Settings(data=folder)


@contextmanager
def over_http(settings: Settings) -> Generator[str]:
    with forked(serve, settings.data, log=settings.data / "log") as process:
        yield process.said
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


@asynccontextmanager
async def connected(
    settings: Settings, url: str, how: str, heard: MessageHandlerFnT | None = None
) -> AsyncGenerator[Client]:
    """Connect to a server process. `how` is the transport and, for hosts of before 2026, `legacy`."""
    transport, _, mode = how.partition(" ")
    command = StdioServerParameters(command=sys.executable, args=["-c", RUN, str(settings.data)], env=dict(os.environ))
    async with Client(command if transport == "stdio" else url, mode=mode or "auto", message_handler=heard) as client:
        yield client


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


async def ask(client: Client, tool: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments)
    return text_of(result), bool(result.is_error)


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return cast("dict[str, Any]", result.structured_content)


async def read(client: Client, uri: str) -> dict[str, Any]:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return json.loads(content.text)


async def answered(engine: Engine) -> SessionId:
    session = await engine.sessions.create(name="Rivers")
    async for _ in engine.turn(session.id, "Hello"):
        pass
    return session.id


@pytest.mark.parametrize("how", ["stdio", "http", "stdio legacy", "http legacy"])
async def test_a_host_keeps_the_working_context_of_a_session(settings: Settings, url: str, how: str) -> None:
    async with open_engine(settings) as engine:
        session = await engine.sessions.create(name="Rivers")
        with anyio.fail_after(PATIENCE_S):
            async with connected(settings, url, how) as client:
                tools = [
                    (tool.name, "session_id" in tool.input_schema.get("required", []))
                    for tool in (await client.list_tools()).tools
                ]
                empty = await ask(client, "get_relevant_context", session_id=session.id)
                answers = [
                    await ask(client, "set_relevant_context", session_id=session.id, set_name="ports", items=["80"]),
                    await ask(
                        client,
                        "set_relevant_context",
                        session_id=session.id,
                        set_name="ports",
                        items=["81"],
                        mode="merge",
                    ),
                    await ask(client, "set_relevant_context", session_id=session.id, set_name="files", items=["a.md"]),
                    await ask(client, "get_relevant_context", session_id=session.id, set_name="ports"),
                ]
                stranger, failed = await ask(client, "get_relevant_context", session_id="ses_none")
        state = await engine.sessions.get(session.id)
        last = (await engine.store.read(session.id))[-1].event

    assert tools == [
        (name, False)
        for name in (
            "set_relevant_context",
            "get_relevant_context",
            "search_context",
            "explain_context",
            "list_sessions",
            "start_session",
            "ask_agent",
            "change_context_item",
            "set_include_mode",
        )
    ]
    assert empty == ("No context stored for this session", False)
    assert answers == [
        ("Set ports: 1 items", False),
        ("Merged ports: 2 items", False),
        ("Files need absolute paths, and 'a.md' is not one. Nothing was changed.", True),
        ('{\n  "ports": [\n    "80",\n    "81"\n  ]\n}', False),
    ]
    assert (stranger, failed) == ("Error executing tool get_relevant_context: no session 'ses_none'", True)
    assert state.sets == {"ports": ("80", "81")}
    assert last == SessionContext(reason="changed", context=state.sets, set_name="ports", actor="model")


async def test_a_host_changes_which_items_a_session_uses_and_how_they_are_included(tmp_path: Path) -> None:
    settings = written(tmp_path)
    async with open_engine(settings) as engine:
        session = await engine.sessions.create()
        with anyio.fail_after(PATIENCE_S):
            async with Client(create_server(engine)) as client:
                answers = [
                    await ask(client, "change_context_item", session_id=session.id, item=item, change=change)
                    for item, change in (
                        ("reference:atlas", "never"),
                        ("reference:atlas", "never"),
                        ("reference:atlas", "readmit"),
                        ("rule:tone", "remove"),
                        ("rule:tone", "add"),
                    )
                ]
                mode = await ask(
                    client,
                    "set_include_mode",
                    session_id=session.id,
                    item="reference:atlas",
                    include="always",
                    also_in_this_session=True,
                )
        state = await engine.sessions.get(session.id)
        last = (await engine.store.read(session.id))[-1].event

    assert answers == [
        ("reference:atlas: never", False),
        ("reference:atlas: nothing changed", False),
        ("reference:atlas: readmit", False),
        ("rule:tone: remove", False),
        ("rule:tone: add", False),
    ]
    assert mode == ("changed references/atlas.md (reference:atlas: include: always)", False)
    assert "include: always" in (settings.data / "agents/pane/references/atlas.md").read_text()
    assert [str(item.ref) for item in state.context_items] == ["rule:tone", "reference:atlas"]
    assert last == ItemAdded(item=SessionItem(reference_ref("atlas"), "manual"), actor="model")


@pytest.mark.parametrize("how", ["stdio", "http"])
async def test_a_listener_is_told_of_changes_that_another_process_makes(settings: Settings, url: str, how: str) -> None:
    async with open_engine(settings) as engine:
        session = await engine.sessions.create(name="Rivers")
        uri = f"windowpane://sessions/{session.id}/context"
        with anyio.fail_after(PATIENCE_S):
            async with connected(settings, url, how) as client:
                listed = [(str(resource.uri), resource.name) for resource in (await client.list_resources()).resources]
                before = await read(client, uri)
                heard: list[ServerEvent] = []
                async with client.listen(resource_subscriptions=[uri, "windowpane://sessions/none/context"]) as changes:
                    await engine.working.set(session.id, "ports", ["80"])
                    heard.append(await anext(changes))
                    await engine.sessions.update(session.id, {"name": "Mountains"})
                    await engine.working.set(session.id, "ports", [])
                    heard.append(await anext(changes))
                after = await read(client, uri)
                with pytest.raises(MCPError, match="no session 'ses_none'"):
                    await client.read_resource("windowpane://sessions/ses_none/context")

    assert [entry for entry in listed if entry[0] == uri] == [(uri, "working context of Rivers")]
    assert before == {"session_id": session.id, "name": "Rivers", "context": {}, "observed": []}
    assert heard == [ResourceUpdated(uri)] * 2
    assert after == {**before, "name": "Mountains"}


@pytest.mark.filterwarnings("ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("how", ["stdio legacy", "http legacy"])
async def test_a_host_of_before_2026_subscribes_to_a_session_and_takes_that_back(
    settings: Settings, url: str, how: str
) -> None:
    send, receive = anyio.create_memory_object_stream[str](10)

    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await send.send(str(message.params.uri))

    async with open_engine(settings) as engine, send, receive:
        first, other = [(await engine.sessions.create()).id for _ in range(2)]
        uris = [f"windowpane://sessions/{each}/context" for each in (first, other)]
        with anyio.fail_after(PATIENCE_S):
            async with connected(settings, url, how, hear) as client:
                offered = client.server_capabilities.resources
                for uri in (uris[0], uris[0], uris[1]):
                    await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]  # older hosts do
                await engine.working.set(first, "ports", ["80"])
                heard = [await receive.receive()]
                await client.unsubscribe_resource(uris[0])  # pyright: ignore[reportDeprecated]  # older hosts do
                await engine.working.set(first, "ports", ["81"])
                await engine.working.set(other, "ports", ["82"])
                heard.append(await receive.receive())
                with pytest.raises(MCPError, match="no session 'ses_none'"):
                    await client.subscribe_resource("windowpane://sessions/ses_none/context")  # pyright: ignore[reportDeprecated]  # older hosts do
                with pytest.raises(MCPError, match="does not change"):
                    await client.subscribe_resource("windowpane://agents/pane/rules/tone")  # pyright: ignore[reportDeprecated]  # older hosts do

    assert offered is not None
    assert (offered.subscribe, heard) == (True, uris)


async def test_a_host_learns_what_a_message_would_bring_and_why_something_was_in_a_turn(
    settings: Settings, url: str
) -> None:
    async with open_engine(settings) as engine:
        session_id = await answered(engine)
        before = await engine.sessions.get(session_id)
        new = (await engine.sessions.create()).id
        with anyio.fail_after(PATIENCE_S):
            async with connected(settings, url, "http") as client:
                found = await told(client, "search_context", session_id=session_id, message="How long is the Danube?")
                turn = await told(client, "explain_context", session_id=session_id)
                rule = await told(client, "explain_context", session_id=session_id, turn=1, item="rule:tone")
                failures = [
                    await ask(client, "explain_context", session_id=session_id, item="rule:tune"),
                    await ask(client, "explain_context", session_id=session_id, turn=9),
                    await ask(client, "search_context", session_id=session_id, message=" "),
                    await ask(client, "explain_context", session_id=new),
                ]
        after = await engine.sessions.get(before.id)

    fate = {
        "item": "rule:tone",
        "include_mode": "always",
        "status": "used",
        "reason": "included in every session of this agent",
        "tokens": rule["items"][0]["tokens"],
        "score": None,
    }
    assert found["items"][0] == fate
    assert {each["item"] for each in (*found["items"], *found["left_out"])} == {"rule:tone", "reference:atlas"}
    assert all(each["reason"] for each in found["left_out"])
    assert (turn["turn"], turn["query"], turn["items"][0]) == (1, "Hello", fate)
    assert [part["kind"] for part in turn["parts"]][-1] == "message"
    assert rule == {**turn, "items": [fate], "left_out": [], "parts": []}
    assert failures == [
        ("Error executing tool explain_context: turn 1 did not consider 'rule:tune'; did you mean rule:tone?", True),
        (f"Error executing tool explain_context: session {session_id!r} has no turn 9", True),
        ("Error executing tool search_context: the message is empty", True),
        ("Error executing tool explain_context: this session has had no turn yet", True),
    ]
    assert after == before


@pytest.mark.parametrize("name", ["tone", "pane/rule/nothing", "nobody/rule/tone"])
async def test_a_prompt_that_is_not_there_is_the_callers_fault(settings: Settings, url: str, name: str) -> None:
    async with connected(settings, url, "http") as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt(name)

    why = f"no prompt {name!r}; a prompt is named agent/rule/name or agent/reference/name"
    assert (refused.value.error.code, refused.value.error.message) == (-32602, why)


async def test_a_host_begins_without_a_session_and_finds_it_again(settings: Settings, url: str) -> None:
    async with connected(settings, url, "http") as client:
        noted = await told(client, "set_relevant_context", set_name="ports", items=["8470"])
        again = await told(client, "get_relevant_context")
        begun = await told(client, "start_session", agent="pane", name="Rivers")
        answer = await told(client, "ask_agent", message="Hello", session_id=begun["session_id"])
        listed = await told(client, "list_sessions")
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        rule = (await client.get_prompt("pane/rule/tone")).messages[0].content
        (text,) = (await client.read_resource("windowpane://agents/pane/reference/atlas")).contents
        with pytest.raises(MCPError):
            await client.read_resource("windowpane://agents/pane/rule/nothing")

    assert (noted["context"], again) == ({"ports": ["8470"]}, noted)
    assert begun == {"session_id": begun["session_id"], "agent": "pane", "name": "Rivers", "turns": 0}
    assert (answer["session_id"], answer["turn"], answer["outcome"]) == (begun["session_id"], 1, "completed")
    assert answer["text"].startswith("I am the built-in offline model")
    names = {entry["session_id"]: (entry["name"], entry["turns"]) for entry in listed["sessions"]}
    assert names[begun["session_id"]] == ("Rivers", 1)
    assert names[noted["session_id"]] == ("MCP host", 0)
    assert prompts == ["pane/rule/tone", "pane/reference/atlas"]
    assert isinstance(rule, TextContent)
    assert isinstance(text, TextResourceContents)
    assert (rule.text, text.text) == ("Be kind.", "The Danube is long.")


async def test_over_http_a_page_of_another_name_is_refused(url: str) -> None:
    host, port = url.removeprefix("http://").removesuffix("/mcp").split(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        head = b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        await stream.send(head + b"\r\n{}")
        reply = await stream.receive()

    assert reply.startswith(b"HTTP/1.1 421 ")


GARBAGE = {
    "nothing": b"",
    "half an object": b'{"jsonrpc": "2.0", "id": 1',
    "no text": b"\xff\xfe\x00",
    "a list": b"[1, 2]",
    "a null": b"null",
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "a very deep list": b"[" * 100_000,
    "a very long number": b'{"jsonrpc": "2.0", "method": "ping", "id": ' + b"9" * 10_000 + b"}",
    "a very long message": b'{"jsonrpc": "2.0", "method": "ping", "id": "' + b"x" * 2**23 + b'"}',
}
RAW = {
    "no HTTP": (b"\x16\x03\x01\x02\x00" * 100 + b"\r\n\r\n", b"HTTP/1.1 400"),
    "a head that is too long": (b"POST /mcp HTTP/1.1\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", b"HTTP/1.1 431"),
}


async def test_over_http_garbage_is_refused_and_the_server_goes_on(settings: Settings, url: str) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    address = url.removeprefix("http://").removesuffix("/mcp").split(":")
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        refused = {what: (await http.post(url, content=body)).status_code for what, body in GARBAGE.items()}
        unknown = (await http.post(url, content=b"{}", headers={"Mcp-Session-Id": "\x7f'--"})).status_code
    raw: dict[str, bytes] = {}
    for what, (sent, _) in RAW.items():
        async with await anyio.connect_tcp(address[0], int(address[1])) as stream:
            await stream.send(sent)
            raw[what] = (await stream.receive())[:12]
    async with open_engine(settings) as engine:
        session = (await engine.sessions.create()).id
    async with connected(settings, url, "http") as client:
        alive = await ask(client, "get_relevant_context", session_id=session)

    assert refused == {**dict.fromkeys(GARBAGE, 400), "a very long message": 413}
    assert unknown in (400, 404)
    assert raw == {what: status for what, (_, status) in RAW.items()}
    assert alive == ("No context stored for this session", False)


def test_a_port_that_is_taken_is_said(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(InvalidSettingError) as refused:
            run_mcp(settings, "http", port)

    assert str(refused.value).startswith(f"port: cannot listen on 127.0.0.1 port {port}: Address already in use")


@asynccontextmanager
async def shown(url: str, secret: str, mode: str) -> AsyncGenerator[Client]:
    """Connect with a token."""
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Settings, str]]:
    """A data folder, and the address of a server of it that needs a token."""
    settings = written(tmp_path_factory.mktemp("guarded"))
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("WINDOWPANE_REQUIRE_TOKEN", "true")
            url = stack.enter_context(over_http(settings))
        yield settings, url


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_a_token_opens_the_sessions_of_its_owner_and_no_others(
    guarded: tuple[Settings, str], mode: str
) -> None:
    settings, url = guarded
    tokens = TokenFile(settings.tokens_file)
    secrets = {name: tokens.create(f"{name}-{mode}", ["chat"])[1] for name in ("ann", "bob")}
    reader = tokens.create(f"ann-{mode}", ["read"])[1]
    async with open_engine(settings) as engine:
        session = (await engine.sessions.create(owner=f"ann-{mode}")).id
    with anyio.fail_after(PATIENCE_S):
        nobody = [
            httpx2.post(url, json={}, headers=headers)
            for headers in ({}, {"Authorization": "Bearer wp_nobody"}, {"Authorization": "Basic x"})
        ]
        asked = {"session_id": session, "set_name": "ports", "items": ["80"]}
        async with shown(url, secrets["ann"], mode) as client:
            own = await ask(client, "set_relevant_context", **asked)
            listed = [resource.uri for resource in (await client.list_resources()).resources]
        async with shown(url, reader, mode) as client:
            refused = await ask(client, "set_relevant_context", **asked)
            looked = await ask(client, "get_relevant_context", session_id=session)
        async with shown(url, secrets["bob"], mode) as client:
            wanted: dict[str, dict[str, Any]] = {
                "set_relevant_context": {"set_name": "ports", "items": []},
                "get_relevant_context": {},
                "search_context": {"message": "rivers"},
                "explain_context": {},
            }
            foreign = [
                await ask(client, tool, session_id=name, **more)
                for name in (session, "ses_nobody")
                for tool, more in wanted.items()
            ]
            others = (await client.list_resources()).resources

    assert [(answer.status_code, answer.json()["error"]) for answer in nobody] == [(401, "token_needed")] * 3
    assert own == ("Set ports: 1 items", False)
    items = ["windowpane://agents/pane/rule/tone", "windowpane://agents/pane/reference/atlas"]
    assert listed == [f"windowpane://sessions/{session}/context", *items]
    assert refused[0].endswith(": this needs a token with the scope 'chat'; yours does not have it")
    assert json.loads(looked[0]) == {"ports": ["80"]}
    assert foreign == [
        (f"Error executing tool {tool}: no session '{name}'", True)
        for name in (session, "ses_nobody")
        for tool in wanted
    ]
    assert [resource.uri for resource in others] == items
    address = nobody[0].headers["www-authenticate"].partition('resource_metadata="')[2].removesuffix('"')
    described = httpx2.get(address).json()
    assert (described["resource"], described["bearer_methods_supported"]) == (url, ["header"])
    bearer = {"Authorization": f"Bearer {secrets['ann']}"}
    elsewhere = httpx2.post(url, json={}, headers={**bearer, "Origin": "https://evil.example"})
    assert elsewhere.status_code == 403


async def test_a_host_that_others_can_reach_needs_a_token(settings: Settings) -> None:
    with pytest.raises(InvalidSettingError, match="there is no token yet that keeps them out"):
        run_mcp(settings.model_copy(update={"host": "0.0.0.0"}), "http", 0)
