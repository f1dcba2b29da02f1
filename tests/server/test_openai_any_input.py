"""Whatever conversation is sent, it is answered or refused, and never breaks anything."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windowpane.testing import World

Some = st.SearchStrategy[Any]


def table(needed: dict[str, Some], **optional: Some) -> Some:
    return st.fixed_dictionaries(needed, optional=optional)


TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)
IDS = st.sampled_from(["c1", "c2", "ses_x.c1", ""]) | TEXTS
FUNCTION = table({"name": st.sampled_from(["weather", "x y"]), "arguments": TEXTS})
CALLS: Some = st.lists(table({"id": IDS, "function": FUNCTION}), max_size=2)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
MESSAGE = table({"role": ROLES}, content=st.none() | TEXTS, tool_calls=CALLS, tool_call_id=IDS)
ITEM = table(
    {},
    type=st.sampled_from(["message", "function_call", "function_call_output", "reasoning"]),
    role=st.sampled_from(["user", "assistant", "developer"]),
    content=TEXTS,
    call_id=IDS,
    name=st.just("weather"),
    arguments=TEXTS,
    output=TEXTS,
)
MORE = table(
    {},
    stream=st.booleans(),
    metadata=table({}, session=TEXTS | st.just("one")),
    tools=st.just([{"type": "function", "name": "weather", "function": {"name": "weather"}}]),
    temperature=st.floats(-1, 3),
)
CHATS: Some = st.tuples(st.just("/v1/chat/completions"), table({"messages": st.lists(MESSAGE, max_size=5)}), MORE)
RESPONSES: Some = st.tuples(st.just("/v1/responses"), table({"input": st.lists(ITEM, max_size=5) | TEXTS}), MORE)


@pytest.fixture
def world(world: World) -> World:
    world.write("agent.yaml", "model: echo\n")
    return world


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=CHATS | RESPONSES)
async def test_any_conversation_is_answered_or_refused(
    client: httpx2.AsyncClient, request: tuple[str, dict[str, Any], dict[str, Any]]
) -> None:
    path, said, more = request
    body = json.dumps({"model": "pane", **said, **more})

    response = await client.post(path, content=body, headers={"Content-Type": "application/json"})

    assert response.status_code in (200, 400, 404, 409), response.text
    if response.status_code != 200:
        assert sorted(response.json()["error"]) == ["code", "message", "param", "type"]
    elif more.get("stream"):
        assert '"error": {' not in response.text
    else:
        assert response.json()["object"] in ("chat.completion", "response")
