from __future__ import annotations

from pathlib import Path

import pytest

from server.place import problem_in, served
from windowpane.testing import World

PAGE = "<!doctype html><title>Guide</title><script>a()</script><script src='x.js'></script><script>a()</script>"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site as `make docs` leaves it."""
    folder = tmp_path / "guide"
    (folder / "reference").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "reference" / "index.html").write_text("<!doctype html><title>Reference</title>")
    (folder / "search.json").write_text("{}")
    (tmp_path / "secret.txt").write_text("not yours")
    return folder


async def test_the_guide_is_a_site_of_pages_and_files(world: World, site: Path) -> None:
    async with served(world, guide_folder=site) as client:
        led = [await client.get(path) for path in ("/docs", "/docs/guide", "/docs/guide/reference")]
        home = await client.get("/docs/guide/")
        page = await client.get("/docs/guide/reference/")
        file = await client.get("/docs/guide/search.json")
        again = await client.get("/docs/guide/", headers={"If-None-Match": home.headers["etag"]})

    assert [(answer.status_code, answer.headers["location"]) for answer in led] == [
        (307, "/docs/guide/"),
        (307, "/docs/guide/"),
        (307, "/docs/guide/reference/"),
    ]
    assert (home.text, page.text, file.text) == (PAGE, "<!doctype html><title>Reference</title>", "{}")
    assert (again.status_code, again.text) == (304, "")


async def test_the_page_knows_where_the_guide_is_if_it_was_built(world: World, site: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "index.html").write_text('<meta name="windowpane-guide" content="" />')
    told: list[str] = []
    for folder in (site, tmp_path / "none"):
        async with served(world, bundle=bundle, guide_folder=folder) as client:
            told.append((await client.get("/")).text)

    assert told == [
        '<meta name="windowpane-guide" content="/docs/guide/" />',
        '<meta name="windowpane-guide" content="" />',
    ]


async def test_a_page_of_the_guide_may_run_exactly_the_scripts_that_were_built_into_it(
    world: World, site: Path
) -> None:
    async with served(world, guide_folder=site) as client:
        policies = [
            (await client.get(f"/docs/guide/{path}")).headers["content-security-policy"] for path in ("", "reference/")
        ]

    script = "'sha256-qVpDBgj7bpq5hMAcGp3AOc79J3Y1Z4HvySTwKrWDoy4='"
    assert f"; script-src 'self' {script}; style-src 'self' 'unsafe-inline';" in policies[0]
    assert "; script-src 'self'; style-src 'self' 'unsafe-inline';" in policies[1]


async def test_nothing_but_the_guide_is_served_below_its_address(world: World, site: Path) -> None:
    paths = ("..%2Fsecret.txt", "%2e%2e/secret.txt", "%2Fetc%2Fhosts", "%00", "none.html")
    async with served(world, guide_folder=site) as client:
        answers = [await client.get(f"/docs/guide/{path}") for path in paths]

    assert {(answer.status_code, "not yours" in answer.text) for answer in answers} == {(404, False)}


async def test_a_guide_that_is_not_built_says_how_to_build_it(world: World, tmp_path: Path) -> None:
    async with served(world, guide_folder=tmp_path / "none") as client:
        answer = await client.get("/docs/guide/")

    assert answer.status_code == 404
    assert problem_in(answer)["detail"] == (
        "/docs/guide/: the guide is not built; run `make docs` in a clone of the repository"
    )
