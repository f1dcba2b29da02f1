from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from server.place import served
from windowpane.callers import TokenFile
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World

WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


async def test_nobody_reaches_what_somebody_else_asked(world: World, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    ada, ben = (tokens.create(name, ["chat"])[1] for name in ("ada", "ben"))
    world.says(Reply(calls=(Call("client__weather", "{}", id="c1"),)), "Mine.", "Theirs.", "Done.")
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]
    async with (
        served(world, tokens=tokens, token_needed=True) as http,
        openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key=ada, max_retries=0) as first,
        openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key=ben, max_retries=0) as second,
        openai.AsyncOpenAI(base_url=f"{http.base_url}/v1", api_key="wp_wrong", max_retries=0) as nobody,
    ):
        asked = await first.chat.completions.with_raw_response.create(model="pane", messages=messages, tools=[WEATHER])
        session, message = asked.headers["windowpane-session"], asked.parse().choices[0].message
        result = {"role": "tool", "tool_call_id": (message.tool_calls or [])[0].id, "content": "rain"}
        told: list[Any] = [*messages, message.to_dict(), result]
        theirs = await second.chat.completions.with_raw_response.create(model="pane", messages=told, tools=[WEATHER])
        with pytest.raises(openai.NotFoundError):
            await second.chat.completions.create(model="pane", messages=messages, metadata={"session": session})
        with pytest.raises(openai.NotFoundError):
            await second.responses.create(model="pane", input="Hi", previous_response_id=f"resp_{session}_1-2")
        with pytest.raises(openai.AuthenticationError) as refused:
            await nobody.models.list()
        named = [
            (
                await client.chat.completions.with_raw_response.create(
                    model="pane", messages=messages, metadata={"session": "same name"}
                )
            ).headers["windowpane-session"]
            for client in (first, second)
        ]
        looked = [
            (await http.get(f"/api/sessions/{session}", headers={"Authorization": f"Bearer {token}"})).status_code
            for token in (ada, ben)
        ]

    assert theirs.headers["windowpane-session"] != session
    assert refused.value.code == "invalid_api_key"
    assert named[0] != named[1]
    assert looked == [200, 404]
