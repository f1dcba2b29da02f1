"""OpenAI's own client, unchanged, talking to an agent of Windowpane's, with a function that the client runs itself.

It serves an agent of its own, in a folder that goes away again, on a free port. The model behind it is scripted, so
that this runs without a key; an agent of yours uses the model in its `agent.yaml`.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import openai

import windowpane
from windowpane.testing import Call, Reply, ScriptedModel, serving

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
SCRIPT = [Reply(calls=(Call("client__weather", '{"city": "Oslo"}'),)), Reply("It rains in Oslo.")]


async def main(settings: windowpane.Settings) -> None:
    """Ask, run the function, and hand the result in."""
    server = serving(settings, ScriptedModel("example", SCRIPT))
    async with server as address, openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="any") as client:
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        chosen = windowpane.Settings(agents=Path(folder), store_url="memory:")
        windowpane.init_agent(Path(folder, "guide"))
        manifest = Path(folder, "guide", "agent.yaml")
        manifest.write_text(manifest.read_text().replace("model: echo", "model: scripted:example"))
        asyncio.run(main(chosen))
