from __future__ import annotations

import gzip
import re
from pathlib import Path

import httpx2
import pytest

from server.place import problem_in, served
from windowpane.server.page import BUNDLE, PLACES
from windowpane.testing import World

ROUTES = Path(__file__).parents[2] / "web" / "src" / "routing" / "route.ts"
SCRIPT = "console.log('pane');\n" * 200


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A page as the build leaves it."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Built</title>")
    (folder / "theme.js").write_text("void 0")
    (folder / "assets" / "index-1a2b.js").write_text(SCRIPT)
    (tmp_path / "secret.txt").write_text("not yours")
    return folder


async def test_every_place_of_the_page_is_the_same_page_and_asked_for_each_time(world: World, bundle: Path) -> None:
    places = ("/", "/s/ses_1", "/s/ses_1/t/2/items/tool/a%2Fb", "/agents", "/agents/pane/rule/tone", "/analytics")
    async with served(world, bundle=bundle) as client:
        pages = [await client.get(place) for place in places]
        again = await client.get("/", headers={"If-None-Match": pages[0].headers["etag"]})

    assert {(page.status_code, page.text) for page in pages} == {(200, "<!doctype html><title>Built</title>")}
    assert {page.headers["cache-control"] for page in pages} == {"no-cache"}
    assert {page.headers["content-type"] for page in pages} == {"text/html; charset=utf-8"}
    assert "script-src 'self'; style-src 'self'" in pages[0].headers["content-security-policy"]
    assert (again.status_code, again.text) == (304, "")
    assert again.headers["content-security-policy"] == pages[0].headers["content-security-policy"]


async def test_files_that_carry_their_hash_are_kept_for_ever_and_travel_packed(world: World, bundle: Path) -> None:
    async with (
        served(world, bundle=bundle) as client,
        client.stream("GET", "/assets/index-1a2b.js", headers={"Accept-Encoding": "gzip"}) as packed,
    ):
        body = b"".join([chunk async for chunk in packed.aiter_raw()])
        plain = await client.get("/assets/index-1a2b.js", headers={"Accept-Encoding": "identity"})

    assert gzip.decompress(body).decode() == SCRIPT == plain.text
    assert len(body) < len(SCRIPT) / 10
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert packed.headers["content-type"].startswith("text/javascript")


async def test_what_changes_on_disk_is_served_anew(world: World, bundle: Path) -> None:
    async with served(world, bundle=bundle) as client:
        before = await client.get("/theme.js")
        (bundle / "theme.js").write_text("void 1")
        after = await client.get("/theme.js", headers={"If-None-Match": before.headers["etag"]})

    assert (before.text, after.text) == ("void 0", "void 1")


async def test_nothing_but_the_page_is_served(world: World, bundle: Path) -> None:
    paths = ("/assets/..%2F..%2Fsecret.txt", "/assets/%00", "/assets", "/assets/none.js", "/secret.txt", "/elsewhere")
    async with served(world, bundle=bundle) as client:
        answers = [await client.get(path) for path in paths]

    assert [problem_in(answer)["code"] for answer in answers] == ["not_found"] * len(paths)


def test_the_server_and_the_page_agree_on_the_places() -> None:
    first_parts = set(re.findall(r"first === '(\w+)'", ROUTES.read_text()))

    assert first_parts == {place.split("/")[1] for place in PLACES} - {""}


@pytest.mark.skipif(not (BUNDLE / "index.html").is_file(), reason="the page is not built")
async def test_the_built_page_loads_only_files_that_are_there(client: httpx2.AsyncClient) -> None:
    page = (await client.get("/")).text
    files = re.findall(r'(?:src|href)="(/[^"]+)"', page)

    assert any(name.startswith("/assets/") for name in files)
    assert {(await client.get(name)).status_code for name in files} == {200}
    assert not re.search(r"<style|style=|<script(?! [^>]*src=)", page)


async def test_a_browser_at_an_unknown_address_gets_the_page_and_a_program_gets_a_problem(
    world: World, bundle: Path
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with served(world, bundle=bundle) as client:
        visited = await client.get("/nowhere/at-all", headers=browser)
        programs = [
            await client.get("/nowhere/at-all"),
            await client.get("/api/nowhere", headers=browser),
            await client.get("/nowhere.js", headers=browser),
            await client.post("/nowhere", headers=browser),
        ]

    assert (visited.status_code, visited.text) == (404, "<!doctype html><title>Built</title>")
    assert "script-src 'self'" in visited.headers["content-security-policy"]
    assert {response.headers["content-type"] for response in programs} == {"application/problem+json"}
