"""Windowpane below a prefix of its host, and behind the proxies of the documentation."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from pwd import getpwuid

import anyio
import httpx2
import pytest
from websockets.asyncio.client import connect

from patience import PATIENCE_S
from ports import free_port
from server.place import EVENTS, engine_of, listening, new_session, served
from windowpane.callers import TokenFile
from windowpane.client.pane import Client
from windowpane.server.app import create_app
from windowpane.server.middleware.limits import MAX_BODY_BYTES
from windowpane.testing import World

PAGE = """<!doctype html><meta name="windowpane-root" content="" /><link rel="icon" href="./icon.svg" />
<script type="module" src="./assets/index.js"></script>"""
DOCS = Path(__file__).parents[2] / "docs" / "operations.md"
PROXIES = Path(__file__).parents[2] / ".venv" / "proxies"
"""Where `make test-compat` unpacks them."""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "page" / "assets").mkdir(parents=True)
    (tmp_path / "page" / "index.html").write_text(PAGE)
    (tmp_path / "page" / "assets" / "index.js").write_text("/* the page */")
    return tmp_path / "page"


@pytest.mark.parametrize("kept", [True, False])
async def test_everything_is_found_below_the_prefix_whether_or_not_the_proxy_takes_it_away(
    world: World, bundle: Path, kept: bool
) -> None:
    before = "/my/pane" if kept else ""
    async with served(world, root_path="/my/pane/", bundle=bundle) as client:
        page = await client.get(f"{before}/s/ses_1/t/2", headers={"accept": "text/html"})
        script = await client.get(f"{before}/assets/index.js")
        session = (await client.post(f"{before}/api/sessions", json={})).json()["id"]
        read = await client.get(f"{before}/api/sessions/{session}")
        guide = await client.get(f"{before}/docs")
        described = (await client.get(f"{before}/openapi.json")).json()

    assert page.text == PAGE.replace('content=""', 'content="/my/pane"').replace('"./', '"/my/pane/')
    assert (script.text, read.json()["id"]) == ("/* the page */", session)
    assert (guide.headers["location"], described["servers"]) == ("/my/pane/docs/guide/", [{"url": "/my/pane"}])


@pytest.mark.parametrize(
    ("trusted", "header", "root"),
    [
        (True, "/a/b/", "/a/b"),
        (False, "/a/b", ""),
        (True, '/"><script>', ""),
        (True, "//evil.example", ""),
        (True, "", ""),
    ],
)
async def test_the_prefix_of_a_header_counts_only_where_it_is_trusted_and_is_one(
    world: World, bundle: Path, trusted: bool, header: str, root: str
) -> None:
    async with served(world, trust_forwarded_prefix=trusted, bundle=bundle) as client:
        page = await client.get("/", headers={"x-forwarded-prefix": header})

    assert page.text == PAGE.replace('content=""', f'content="{root}"').replace('"./', f'"{root}/')


async def test_the_cookie_of_a_login_is_for_the_prefix_alone(world: World, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    _, secret = tokens.create("ann", ["chat"])
    async with served(world, root_path="/pane", tokens=tokens, token_needed=True) as client:
        cookie = (await client.post("/pane/api/login", json={"token": secret})).headers["set-cookie"]
        left = (await client.post("/pane/api/logout")).headers["set-cookie"]

    assert [re.search(r"Path=(\S+?);", each + ";")[1] for each in (cookie, left)] == ["/pane"] * 2  # type: ignore[index]


def configuration(language: str, **changes: str) -> str:
    """Return a configuration of the documentation, with another port and other files."""
    found = re.search(rf"```{language}\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert found is not None
    text = found[1]
    for name, value in changes.items():
        before = {"server": "127.0.0.1:8470", "port": "443", "cert": "/etc/ssl/certs/example.org.pem"}
        before |= {"key": "/etc/ssl/private/example.org.key", "site": "example.org"}
        assert before[name] in text
        text = text.replace(before[name], value)
    return text


def certificate(folder: Path) -> tuple[Path, Path]:
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    return cert, key


@asynccontextmanager
async def proxied(proxy: str, folder: Path, server: str) -> AsyncGenerator[tuple[str, ssl.SSLContext]]:
    """Run a real proxy with the configuration of the documentation in front of a server."""
    unpacked = [str(PROXIES / folder) for folder in ("usr/sbin", "usr/bin")]
    program = shutil.which(proxy, path=os.pathsep.join((os.environ["PATH"], "/usr/sbin", *unpacked)))
    if program is None or shutil.which("openssl") is None:
        pytest.skip(f"{proxy} and openssl are not installed: `make .venv/proxies/installed`, or apt-get install them")
    cert, key = certificate(folder)
    port = free_port()
    if proxy == "nginx":
        text = configuration("nginx", server=server, port=str(port), cert=str(cert), key=str(key), site="localhost")
        names = ("body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "\n".join(f"{'client_body' if name == 'body' else name}_temp_path {folder / name};" for name in names)
        # Its workers write large bodies into the folder of the test, which is this user's alone.
        user = f"user {getpwuid(os.getuid()).pw_name};\n" if os.getuid() == 0 else ""
        (folder / "nginx.conf").write_text(
            f"{user}daemon off;\npid {folder / 'pid'};\nerror_log {folder / 'error.log'};\nevents {{}}\n"
            f"http {{\naccess_log off;\n{paths}\n{text}\n}}\n"
        )
        command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    else:
        text = configuration("text", server=server, site=f"https://localhost:{port}")
        text = text.replace("{\n", f"{{\n    tls {cert} {key}\n", 1)
        (folder / "Caddyfile").write_text("{\n    admin off\n    auto_https disable_redirects\n}\n" + text)
        command = [program, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    trust = ssl.create_default_context(cafile=str(cert))
    async with await anyio.open_process(command, env={"HOME": str(folder), "XDG_DATA_HOME": str(folder)}) as process:
        try:
            await _answering(f"https://localhost:{port}/pane/healthz", trust)
            yield f"https://localhost:{port}", trust
        finally:
            process.terminate()


async def _answering(url: str, trust: ssl.SSLContext) -> None:
    with anyio.fail_after(PATIENCE_S):
        async with httpx2.AsyncClient(verify=trust) as client:
            while True:
                try:
                    if (await client.get(url)).status_code == 200:
                        return
                except httpx2.TransportError:
                    await anyio.sleep(0.05)


PROVED = ("prefix", "TLS", "streams", "WebSocket", "sizes")


@pytest.mark.parametrize(
    "proxy",
    [
        pytest.param("nginx", marks=pytest.mark.client("nginx", *PROVED)),
        pytest.param("caddy", marks=pytest.mark.client("Caddy", *PROVED)),
    ],
)
async def test_page_api_streams_sockets_and_sizes_come_through_a_proxy_with_tls(
    world: World, tmp_path: Path, bundle: Path, proxy: str
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    _, secret = tokens.create("ann", ["chat"])
    world.says("Hello there.", "And again.")
    app = create_app(engine_of(world), root_path="/pane", tokens=tokens, token_needed=True, hosts=None, bundle=bundle)
    large = "x" * (MAX_BODY_BYTES - 1000)
    bearer = {"authorization": f"Bearer {secret}"}
    async with listening(app) as server, proxied(proxy, tmp_path, server.removeprefix("http://")) as (url, trust):
        async with httpx2.AsyncClient(base_url=f"{url}/pane", verify=trust, timeout=PATIENCE_S) as client:
            bare = await client.get(f"{url}/pane")
            page = await client.get("/", headers={"accept": "text/html"})
            logged_in = await client.post("/api/login", json={"token": secret}, headers={"origin": url})
            session = await new_session(client)
            message = {"content": "Hi"}
            streamed = await client.post(f"/api/sessions/{session}/messages", json=message, headers=EVENTS)
            refused = await client.post(f"/api/sessions/{session}/pages", json={"url": "https://a.b", "text": large})
            # The server does not read all of it, so on a busy machine a proxy may lose the rest of the answer.
            content = b'{"name": "' + b"x" * MAX_BODY_BYTES + b'"}'
            async with client.stream("POST", "/api/sessions", content=content) as too_large:
                pass
        address = f"{url.replace('https', 'wss')}/pane/api/sessions/{session}/events"
        async with connect(address, ssl=trust, additional_headers=bearer, origin=url) as socket:  # type: ignore[arg-type]
            first = await socket.recv()
        async with Client(f"{url}/pane", token=secret, transport=httpx2.AsyncHTTPTransport(verify=trust)) as pane:
            asked = await pane.ask(session, "Again?")

    assert (bare.status_code, bare.headers["location"].removeprefix(url)) in [(301, "/pane/"), (302, "/pane/")]
    assert 'src="/pane/assets/index.js"' in page.text
    assert {"Secure", "Path=/pane"} <= set(logged_in.headers["set-cookie"].split("; "))
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert "Hello" in streamed.text
    assert (refused.status_code, too_large.status_code) == (201, 413)
    assert first == '{"type": "session.context", "data": {"reason": "load", "context": {}}}'
    assert asked.text == "And again."
