"""The tour is true: what it names exists, and a turn over HTTP calls it in that order."""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import httpx2

import windowpane
from windowpane.models.scripted import Call, Reply
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.history import HistoryIndex
from windowpane.search.index import ItemIndex
from windowpane.server.app import create_app
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool

SOURCES = Path(windowpane.__file__).parent
TOUR = (Path(__file__).parents[2] / "docs" / "tour.md").read_text()
HOP = re.compile(r"^\d+\. \*\*`([\w/]+\.py)`\*\*, `([\w.]+)\(\)`", re.MULTILINE)
FILE = re.compile(r"`((?:[\w]+/)+[\w]+\.py|\w+\.py)`")

Hop = tuple[str, str]
"""A file and a function in it, by its qualified name."""


def hops() -> list[Hop]:
    return [(file, function) for file, function in HOP.findall(TOUR)]


def functions_in(file: str) -> set[str]:
    """Return the qualified names of a module's functions and methods."""
    found: set[str] = set()

    def walk(body: list[ast.stmt], within: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{within}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(f"{within}{node.name}")

    walk(ast.parse((SOURCES / file).read_text()).body, "")
    return found


@contextmanager
def traced() -> Generator[dict[Hop, None]]:
    """Note every function of the package when it is first called, here and in threads that are begun meanwhile."""
    called: dict[Hop, None] = {}
    prefix = f"{SOURCES}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(prefix):
            called.setdefault((code.co_filename.removeprefix(prefix), code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def test_every_hop_of_the_tour_is_numbered_and_names_a_function_that_exists() -> None:
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", TOUR, re.MULTILINE)]

    assert numbers == list(range(1, len(hops()) + 1))
    assert [hop for hop in hops() if hop[1] not in functions_in(hop[0])] == []


def test_every_file_that_the_tour_names_exists() -> None:
    root = SOURCES.parents[1]
    known = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py")}
    siblings = {path.name for path in (SOURCES / "insight").rglob("*.py")}
    named = set(FILE.findall(TOUR))

    assert {file for file in named if not (file in known or file in siblings or (root / file).exists())} == set()


async def test_a_turn_over_http_calls_the_hops_of_the_tour_in_their_order(world: World, tmp_path: Path) -> None:
    embedder = MiniLM(tmp_path / "model")
    world.store = SQLiteStore(tmp_path / "a.db")
    world.selector = HybridSelector(ItemIndex(embedder, VectorCache(tmp_path / "vectors")))
    world.reference("tides", "High tide is at noon.", include="agent")
    world.toolbox.put("files", [tool("read", permission="none")])
    world.says(Reply(calls=(Call("files__read", "{}", "c1"),)), Reply("At noon."))
    with traced() as called:
        async with world.engine(history=HistoryIndex(embedder)) as engine:
            app = create_app(engine)
            app.state.opened = True
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
                created = (await client.post("/api/sessions", json={})).json()
                called.clear()
                answer = await client.post(
                    f"/api/sessions/{created['id']}/messages", json={"content": "When is high tide?"}
                )

    assert answer.json()["text"] == "At noon."
    toured = set(hops())
    assert [hop for hop in called if hop in toured] == hops()
