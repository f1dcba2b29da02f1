"""Routes that are built when they are first taken."""

import json
import subprocess
import sys

import httpx2
from fastapi import FastAPI

from windowpane.server.lazy_routes import LazyRoute, LazyRouter, build_all

BUILT = """
import json
from windowpane.server.app import RESOURCES
routes = [route for resource in RESOURCES for route in resource.router.routes]
print(json.dumps([route.path for route in routes if hasattr(route, "methods") and "app" in vars(route)]))
"""


def small_app() -> tuple[FastAPI, LazyRouter]:
    router = LazyRouter(prefix="/things", tags=["things"])

    @router.get("/{number}", summary="Read a thing")
    async def read_thing(number: int) -> dict[str, int]:
        return {"number": number}

    @router.post("", summary="Count words")
    async def count_words(words: list[str]) -> int:
        return len(words)

    app = FastAPI()
    app.router.routes.extend(router.routes)
    return app, router


def built(router: LazyRouter) -> list[str]:
    return [route.name for route in router.routes if isinstance(route, LazyRoute) and "app" in vars(route)]


def test_a_server_that_is_loaded_has_built_no_route() -> None:
    told = subprocess.run([sys.executable, "-c", BUILT], capture_output=True, text=True, check=True)

    assert json.loads(told.stdout) == []


async def test_a_request_builds_the_route_that_it_takes_and_no_other() -> None:
    app, router = small_app()
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client:
        wrong = await client.get("/things/some")
        right = await client.get("/things/7")
        other = await client.put("/things/7")

    assert (wrong.status_code, right.json(), other.status_code) == (422, {"number": 7}, 405)
    assert built(router) == ["read_thing"]


def test_the_description_of_a_lazy_route_is_that_of_a_built_one() -> None:
    app, router = small_app()
    for route in router.routes:
        assert isinstance(route, LazyRoute)
        route.operation_id = route.name

    described = app.openapi()

    assert {
        (path, method): each["operationId"] for path, of in described["paths"].items() for method, each in of.items()
    } == {
        ("/things/{number}", "get"): "read_thing",
        ("/things", "post"): "count_words",
    }
    assert described["paths"]["/things"]["post"]["tags"] == ["things"]


def test_all_routes_can_be_built_at_once() -> None:
    app, router = small_app()

    build_all(app.routes)

    assert built(router) == ["read_thing", "count_words"]


def test_a_question_about_what_no_route_has_builds_nothing() -> None:
    _, router = small_app()

    assert [hasattr(route, "original_router") for route in router.routes] == [False, False]
    assert built(router) == []
