from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import anthropic
import anyio
import httpx2
import openai
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from patience import PATIENCE_S
from server.guests import guarded
from server.place import EVENTS, events_in, new_session, problem, problem_in, served
from windowpane.callers import TokenFile
from windowpane.models.scripted import Reply
from windowpane.testing import World

NEEDED = (
    "this server needs a token; send `Authorization: Bearer TOKEN`, or give the token as `api_key` to a client of "
    "OpenAI or Anthropic (`windowpane token create --owner NAME` creates one)"
)
INVALID = NEEDED.replace("this server needs a token", "the token is invalid or revoked")


def cookie_of(response: httpx2.Response) -> str:
    return response.headers["set-cookie"]


async def test_without_a_token_nobody_comes_in_and_is_told_how(world: World) -> None:
    async with guarded(world) as place:
        refused = await place.client.get("/api/sessions")

    assert problem_in(refused) == problem(401, "token_needed", NEEDED)
    assert refused.headers["www-authenticate"] == 'Bearer realm="windowpane"'


@pytest.mark.parametrize("shown", ["Bearer", "Bearer wp_nobody", "Bearer sk-something", "bearer x y"])
async def test_a_token_of_nobody_does_not_help(world: World, shown: str) -> None:
    async with guarded(world) as place:
        refused = await place.client.get("/api/sessions", headers={"Authorization": shown})

    assert problem_in(refused) == problem(401, "token_needed", INVALID)


async def test_clients_of_openai_and_anthropic_are_told_what_to_do_in_their_own_form(world: World) -> None:
    async with guarded(world) as place:
        base = str(place.client.base_url)
        bare = [await place.client.post(path, json={}) for path in ("/v1/responses", "/anthropic/v1/messages")]
        async with openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0) as client:
            with pytest.raises(openai.AuthenticationError) as of_openai:
                await client.chat.completions.create(model="pane", messages=[{"role": "user", "content": "Hi"}])
        async with anthropic.AsyncAnthropic(base_url=f"{base}/anthropic", api_key="any", max_retries=0) as client:
            with pytest.raises(anthropic.AuthenticationError) as of_anthropic:
                await client.messages.create(model="pane", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])

    assert [answer.json()["error"]["message"] for answer in bare] == [NEEDED, NEEDED]
    assert (of_openai.value.code, of_openai.value.body) == (
        "invalid_api_key",
        {"message": INVALID, "type": "invalid_request_error", "param": None, "code": "invalid_api_key"},
    )
    assert of_anthropic.value.body == {
        "type": "error",
        "error": {"type": "authentication_error", "message": INVALID},
    }


async def test_another_kind_of_proof_is_none(world: World) -> None:
    async with guarded(world) as place:
        refused = await place.client.get("/api/sessions", headers={"Authorization": "Basic YW5uOmFubg=="})

    assert problem_in(refused) == problem(401, "token_needed", NEEDED)


async def test_every_owner_sees_their_own_sessions_and_no_others(world: World) -> None:
    async with guarded(world) as place:
        ann, bob = place.headers("ann"), place.headers("bob")
        anns, bobs = await place.session(ann), await place.session(bob)
        seen = {
            owner: [
                entry["id"] for entry in (await place.client.get("/api/sessions", headers=headers)).json()["sessions"]
            ]
            for owner, headers in (("ann", ann), ("bob", bob), ("ann again", place.headers("ann", "read")))
        }
        owner = (await place.client.get(f"/api/sessions/{anns}", headers=ann)).json()["owner"]

    assert seen == {"ann": [anns], "bob": [bobs], "ann again": [anns]}
    assert owner == "ann"


async def test_on_loopback_the_user_of_the_machine_needs_no_token_and_owners_stay_apart(
    world: World, tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    ann = {"Authorization": f"Bearer {tokens.create('ann', ['chat'])[1]}"}
    async with served(world, tokens=tokens) as client:
        mine = await new_session(client)
        anns = (await client.post("/api/sessions", json={}, headers=ann)).json()["id"]
        listed = [entry["id"] for entry in (await client.get("/api/sessions")).json()["sessions"]]
        foreign = await client.get(f"/api/sessions/{anns}")
        # Clients made for other servers must send some key, and it means nothing here.
        with_any_key = await client.get(f"/api/sessions/{mine}", headers={"Authorization": "Bearer sk-unused"})
        with_old_token = await client.get(f"/api/sessions/{mine}", headers={"Authorization": "Bearer wp_gone"})

    assert listed == [mine]
    assert foreign.status_code == 404
    assert with_any_key.json()["owner"] == "local"
    assert problem_in(with_old_token) == problem(401, "token_needed", INVALID)


async def test_anybody_may_ask_who_they_are(world: World) -> None:
    async with guarded(world) as place:
        nobody = await place.client.get("/api/me")
        headers = place.headers("ann", "chat")
        ann = await place.client.get("/api/me", headers=headers)
    async with served(world) as client:
        local = await client.get("/api/me")

    assert nobody.json() == {"owner": None, "scopes": [], "token": None, "token_needed": True}
    assert ann.json() == {
        "owner": "ann",
        "scopes": ["read", "chat"],
        "token": headers["Authorization"].split("_")[1],
        "token_needed": True,
    }
    assert local.json() == {
        "owner": "local",
        "scopes": ["read", "chat", "manage"],
        "token": None,
        "token_needed": False,
    }


async def test_a_browser_logs_in_with_a_cookie_that_no_script_and_no_other_site_can_use(world: World) -> None:
    async with guarded(world) as place:
        token = place.token("ann", "chat")
        logged_in = await place.client.post("/api/login", json={"token": token})
        made = await place.client.post("/api/sessions", json={})
        logged_out = await place.client.post("/api/logout")
        after = await place.client.get("/api/sessions")

    assert (logged_in.status_code, logged_in.json()["owner"]) == (200, "ann")
    assert cookie_of(logged_in) == f"windowpane_token={token}; HttpOnly; Path=/; SameSite=strict"
    assert (made.status_code, made.json()["owner"]) == (201, "ann")
    assert logged_out.status_code == 204
    assert 'windowpane_token=""' in cookie_of(logged_out)
    assert after.status_code == 401


async def test_over_https_the_cookie_never_travels_in_the_open(world: World) -> None:
    async with guarded(world) as place:
        # What a proxy on the same machine sends along.
        headers = {"X-Forwarded-Proto": "https"}
        logged_in = await place.client.post("/api/login", json={"token": place.token("ann")}, headers=headers)

    assert cookie_of(logged_in).endswith("; Path=/; SameSite=strict; Secure")


async def test_a_wrong_token_sets_no_cookie_and_is_not_repeated(world: World) -> None:
    async with guarded(world) as place:
        refused = await place.client.post("/api/login", json={"token": "wp_planted_secret"})
        malformed = await place.client.post("/api/login", json={"token": {"planted": "secret"}})

    assert problem_in(refused) == problem(401, "token_needed", INVALID)
    assert "set-cookie" not in refused.headers
    assert "planted" not in refused.text + malformed.text


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
async def test_a_page_of_another_site_cannot_act_with_the_cookie(world: World, headers: dict[str, str]) -> None:
    async with guarded(world) as place:
        await place.client.post("/api/login", json={"token": place.token("ann")})
        refused = await place.client.post("/api/sessions", json={}, headers=headers)

    assert problem_in(refused)["code"] == "foreign_origin"


async def test_a_revoked_token_is_refused_from_the_next_request_on(world: World) -> None:
    async with guarded(world) as place:
        token, secret = place.tokens.create("ann", ["chat"])
        headers = {"Authorization": f"Bearer {secret}"}
        before = await place.client.get("/api/sessions", headers=headers)
        # As another process does it.
        TokenFile(place.tokens.path).revoke(token.id)
        after = await place.client.get("/api/sessions", headers=headers)

    assert (before.status_code, after.status_code) == (200, 401)


async def test_a_revoked_token_ends_what_it_has_open(world: World) -> None:
    world.says(Reply("So far", before_end=anyio.Event()))
    async with guarded(world) as place:
        token, secret = place.tokens.create("ann", ["chat"])
        headers = {"Authorization": f"Bearer {secret}"}
        session = await place.session(headers)
        path = f"/api/sessions/{session}/events"
        address = f"{place.client.base_url}".replace("http", "ws", 1).rstrip("/") + path
        ended: list[str] = []
        watched: list[str] = []

        async def send() -> None:
            body = {"content": "Hi"}
            async with place.client.stream(
                "POST", f"/api/sessions/{session}/messages", json=body, headers=headers | EVENTS
            ) as response:
                async for event in events_in(response):
                    if event.event == "reply.delta":
                        talking.set()
            ended.append("turn")

        async def wait_for_answer() -> None:
            response = await place.client.post(
                f"/api/sessions/{session}/messages", json={"content": "Hi", "wait_s": 600}, headers=headers
            )
            assert problem_in(response)["code"] == "token_needed"
            ended.append("answer")

        talking = anyio.Event()
        with anyio.fail_after(PATIENCE_S):
            async with (
                place.client.stream("GET", path, headers=headers) as stream,
                connect(address, additional_headers=headers) as socket,
                anyio.create_task_group() as tasks,
            ):
                await socket.recv()
                tasks.start_soon(send)
                await talking.wait()
                tasks.start_soon(wait_for_answer)
                place.tokens.revoke(token.id)
                watched += [event.event async for event in events_in(stream)]
                with suppress(ConnectionClosed):
                    while True:
                        await socket.recv()

    assert watched[0] == "session.context"
    assert sorted(ended) == ["answer", "turn"]
    assert (socket.close_code, socket.close_reason) == (4401, "the token is not valid any more")


async def test_tokens_that_cannot_be_read_let_nobody_in_and_tell_nothing_about_the_machine(world: World) -> None:
    async with guarded(world) as place:
        headers = place.headers("ann")
        place.tokens.path.write_text("{")
        refused = await place.client.get("/api/sessions", headers=headers)

    detail = "tokens cannot be looked up now; the server's log says why"
    assert problem_in(refused) == problem(503, "store_unavailable", detail)


async def test_the_description_says_whether_a_token_is_needed(world: World) -> None:
    async with guarded(world) as place:
        needed = (await place.client.get("/openapi.json")).json()
    async with served(world) as client:
        local = (await client.get("/openapi.json")).json()

    path = "/api/sessions/{session_id}/messages"
    assert needed["paths"][path]["post"]["security"] == [{"token": ["chat"]}, {"cookie": ["chat"]}]
    assert local["paths"][path]["post"]["security"] == [{}, {"token": ["chat"]}, {"cookie": ["chat"]}]
    assert needed["components"]["securitySchemes"] == {
        "token": {"type": "http", "scheme": "bearer", "description": "`windowpane token create` makes one."},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "windowpane_token"},
    }


async def test_the_first_page_tells_strangers_nothing_about_the_agents(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\ndescription: planted\n")
    async with guarded(world) as place:
        page = await place.client.get("/")

    assert page.status_code == 200
    assert "planted" not in page.text


async def test_an_owner_cannot_name_a_session_of_another_in_a_header(world: World) -> None:
    world.says("Hello.")
    async with guarded(world) as place:
        session = await place.session(place.headers("ann"))
        bob = place.headers("bob")
        body = {"model": "pane", "messages": [{"role": "user", "content": "Hi"}]}
        answers = [
            await place.client.post("/v1/chat/completions", json=body, headers=bob | {"Windowpane-Session": name})
            for name in (session, "ses_" + "0" * (len(session) - 4))
        ]

    foreign, unknown = (answer.text for answer in answers)
    assert [answer.status_code for answer in answers] == [404, 404]
    assert json.loads(foreign) == json.loads(unknown.replace("ses_" + "0" * (len(session) - 4), session))


async def test_keys_of_tool_servers_are_in_no_answer_for_those_who_may_only_read_or_chat(world: World) -> None:
    header, env = "{Authorization: Bearer planted-header}", "{KEY: planted-env}"
    world.write(
        "agent.yaml",
        f"model: scripted:test\nmcpServers:\n  web:\n    url: http://127.0.0.1:9/mcp\n    headers: {header}\n"
        f"  local:\n    command: notes\n    env: {env}\n",
    )
    paths = ("", "/items", "/problems", "/servers", "/prompts", "/manifest")
    async with guarded(world) as place:
        answers = {
            scope: [
                await place.client.get(f"/api/agents/pane{path}", headers=place.headers("ann", scope)) for path in paths
            ]
            for scope in ("read", "chat", "manage")
        }

    said = "".join(answer.text for scope in ("read", "chat") for answer in answers[scope])
    assert "planted" not in said
    assert [answer.status_code for answer in answers["read"]] == [200, 200, 200, 200, 200, 403]
    assert [answer.status_code for answer in answers["manage"]] == [200] * 6
    assert "planted-header" in answers["manage"][-1].text
