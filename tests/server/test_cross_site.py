from __future__ import annotations

import httpx2
import pytest

from server.place import problem, problem_in, served
from windowpane.testing import World


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8470", "127.0.0.1:1", "[::1]:8470"])
async def test_the_server_answers_to_its_own_names(client: httpx2.AsyncClient, host: str) -> None:
    assert (await client.get("/api/agents", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "[", "10.0.0.1"])
async def test_a_page_that_points_its_own_name_here_is_refused(client: httpx2.AsyncClient, host: str) -> None:
    response = await client.get("/api/sessions", headers={"Host": host})

    detail = "this server answers to 127.0.0.1, ::1, localhost; a proxy in front must send one of them as `Host`"
    assert problem_in(response) == problem(421, "wrong_host", detail)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    ],
)
async def test_a_page_of_another_site_changes_nothing_and_reads_nothing(
    client: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    refused = await client.post("/api/sessions", json={}, headers=headers)
    read = [await client.get(path, headers=headers) for path in ("/api/sessions", "/api/files/diff")]
    models = await client.get("/v1/models", headers=headers)
    anthropic = await client.get("/anthropic/v1/models", headers=headers)
    linked = [await client.get(path, headers=headers) for path in ("/", "/push", "/healthz")]

    assert problem_in(refused) == problem(403, "foreign_origin", "pages of other sites may not change anything here")
    unread = problem(403, "foreign_origin", "pages of other sites may not read anything here")
    assert [problem_in(response) for response in read] == [unread] * 2
    assert (models.status_code, models.json()["error"]["code"]) == (403, "foreign_origin")
    assert (anthropic.status_code, anthropic.json()["error"]["type"]) == (403, "permission_error")
    assert [response.status_code for response in linked] == [200] * 3
    assert not any("access-control-allow-origin" in response.headers for response in (*read, models, *linked))


async def test_its_own_page_may_do_everything(client: httpx2.AsyncClient) -> None:
    headers = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}

    assert (await client.post("/api/sessions", json={}, headers=headers)).status_code == 201


async def test_other_names_can_be_allowed(world: World) -> None:
    async with served(world, hosts=["pane.example"]) as client:
        response = await client.get("/healthz", headers={"Host": "pane.example"})

    assert response.status_code == 200
