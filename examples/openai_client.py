"""OpenAI's own client, unchanged, talking to an agent of Windowpane's, with a function that the client runs itself.

It serves an agent of its own, in a folder that goes away again, on a free port. The model behind it is scripted, so
that this runs without a key; an agent of yours uses the model in its `agent.yaml`.
"""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import uvicorn
from fastapi import FastAPI

from windowpane.agents.init import init_agent
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Call, Reply, ScriptedModel
from windowpane.server.app import create_app
from windowpane.settings import Settings
from windowpane.wiring import open_engine

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
SCRIPT = [Reply(calls=(Call("client__weather", '{"city": "Oslo"}'),)), Reply("It rains in Oslo.")]


async def main(settings: Settings) -> None:
    """Ask, run the function, and hand the result in."""
    models = PydanticModels(scripts=[ScriptedModel("example", SCRIPT)])
    app = create_app(open_engine(settings, models=models))
    async with serving(app) as address, openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="any") as client:
        messages: list[Any] = [{"role": "user", "content": "What is the weather in Oslo?"}]
        for _ in range(2):
            answer = await client.chat.completions.with_raw_response.create(
                model="guide", messages=messages, tools=[WEATHER]
            )
            choice = answer.parse().choices[0]
            print(choice.finish_reason, choice.message.content, "recorded as turn", answer.headers["windowpane-turn"])
            messages.append(choice.message.to_dict())
            for call in choice.message.tool_calls or []:
                city = json.loads(call.to_dict()["function"]["arguments"])["city"]  # type: ignore[index]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": f"rain in {city}"})


@contextlib.asynccontextmanager
async def serving(app: FastAPI) -> AsyncGenerator[str]:
    """Serve an app on a free port."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn tells it no other way
        await asyncio.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await task


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        chosen = Settings(agents=Path(folder), store_url="memory:")
        init_agent(Path(folder, "guide"))
        manifest = Path(folder, "guide", "agent.yaml")
        manifest.write_text(manifest.read_text().replace("model: echo", "model: scripted:example"))
        asyncio.run(main(chosen))
