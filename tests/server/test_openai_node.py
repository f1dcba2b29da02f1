from __future__ import annotations

import pytest

from clients.node import seen_by
from server.place import served
from windowpane.context.messages import Usage
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World


@pytest.mark.client("OpenAI for Node", "chat", "streaming", "tools")
async def test_openais_node_client_works_unchanged(world: World) -> None:
    world.says(
        Reply("Hello.", usage=Usage(7, 3)),
        Reply("Hello again.", usage=Usage(8, 4)),
        Reply(calls=(Call("client__weather", '{"city": "Oslo"}', id="c1"),)),
        "Rain in Oslo.",
        "I will.",
        "It was 7.",
        Reply(calls=(Call("client__weather", '{"city": "Rome"}', id="c2"),)),
        "Sun.",
    )
    async with served(world) as http:
        seen = await seen_by("openai.mjs", str(http.base_url).rstrip("/"))

    assert seen == {
        "models": ["pane"],
        "chat": ["Hello.", "stop", 10],
        "turn": ["ses_", "1"],
        "streamed": ["Hello again.", 12],
        "tools": ["Rain in Oslo.", ["Oslo"]],
        "responses": ["I will.", "It was 7.", "response.created", "response.completed"],
        "called": ["weather", '{"city": "Rome"}', "Sun."],
        "error": ["NotFoundError", 404, "model_not_found", "model"],
    }
