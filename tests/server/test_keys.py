"""Keys of providers over HTTP: given by those who may, never sent back."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from server.guests import guarded
from server.place import problem, problem_in
from windowpane.testing import World

KEY = "sk-given-over-http-123456"


def provider(found: Any, name: str) -> dict[str, Any]:
    listed = json.loads(found.content)
    return next(one for one in listed["providers"] if one["name"] == name) | {"models": None}


async def test_a_key_is_given_and_removed_by_those_who_manage_and_never_sent_back(world: World) -> None:
    async with guarded(world) as place:
        ann, ben = place.headers("ann"), place.headers("ben", "chat")
        path = "/api/providers/anthropic/key"

        async def ask(method: str, path: str, headers: dict[str, str], body: Any = None) -> httpx2.Response:
            return await place.client.request(method, path, headers=headers, json=body)

        refused = [await ask("PUT", path, ben, {"key": KEY}), await ask("DELETE", path, ben)]
        before = await ask("GET", "/api/models", ben)
        given = await ask("PUT", path, ann, {"key": KEY})
        after = await ask("GET", "/api/models", ben)
        wrong = await ask("PUT", path, ann, {"key": f"{KEY} {KEY}"})
        nobody = await ask("PUT", "/api/providers/..%2Fopenai/key", ann, {"key": KEY})
        removed = [await ask("DELETE", path, ann), await ask("DELETE", path, ann)]
        at_last = await ask("GET", "/api/models", ann)

    lacking = {
        "name": "anthropic", "lacking": "key", "advice": "set ANTHROPIC_API_KEY", "key_variable": "ANTHROPIC_API_KEY",
        "key_source": None, "url": "", "models": None,
    }  # fmt: skip
    assert [response.status_code for response in (*refused, given, *removed)] == [403, 403, 204, 204, 204]
    assert provider(before, "anthropic") == provider(at_last, "anthropic") == lacking
    assert provider(after, "anthropic") == lacking | {"lacking": None, "advice": "", "key_source": "kept"}
    assert "anthropic:claude-opus-4-6" in after.json()["models"]
    assert problem_in(wrong) == problem(
        422, "invalid_input", "a key has 1 to 1000 letters, digits and signs, without spaces"
    )
    assert nobody.status_code in (404, 422)
    answered = b"".join(response.content for response in (*refused, given, after, wrong, nobody, at_last))
    assert KEY.encode() not in answered
    assert list((world.root.parent / "keys").iterdir()) == []


@pytest.mark.parametrize("body", [{}, {"key": ""}, {"key": ["sk-inside-a-list"]}, {"key": "sk-inside", "more": 1}])
async def test_a_body_without_a_key_is_refused_without_repeating_it(client: httpx2.AsyncClient, body: Any) -> None:
    response = await client.put("/api/providers/openai/key", json=body)

    assert response.status_code == 422
    assert "sk-inside" not in response.text
