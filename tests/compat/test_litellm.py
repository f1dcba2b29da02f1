"""LiteLLM talks to the server as a client, stands before it as a proxy, and is the provider of an agent."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import openai
import pytest

from compat.process import program, server
from ports import free_port
from server.place import served
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World
from wire import openai_chat
from wire.reply import WireReply
from wire.server import json_answer, running

QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}
CLIENT = """
import json, sys
import litellm
base, messages = sys.argv[1], [{"role": "user", "content": "Hi?"}]
tool = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}
common = {"model": "openai/pane", "api_base": base, "api_key": "none", "num_retries": 0}
whole = litellm.completion(messages=messages, **common)
parts = litellm.completion(messages=messages, stream=True, **common)
streamed = "".join(part.choices[0].delta.content or "" for part in parts)
called = litellm.completion(messages=messages, tools=[tool], **common).choices[0].message.tool_calls[0]
try:
    litellm.completion(messages=messages, **{**common, "model": "openai/none"})
    error = ""
except litellm.NotFoundError as refused:
    error = type(refused).__name__
said = whole.choices[0].message.content
print(json.dumps([said, whole.usage.prompt_tokens > 0, streamed, called.function.name, error]))
"""


@asynccontextmanager
async def litellm_proxy(folder: Path, upstream: str, model: str) -> AsyncGenerator[str]:
    """Run LiteLLM's proxy before a server that speaks OpenAI's protocol."""
    config = folder / "config.yaml"
    settings = {"model": f"openai/{model}", "api_base": f"{upstream}/v1", "api_key": "sk-none"}
    config.write_text(json.dumps({"model_list": [{"model_name": model, "litellm_params": settings}]}))
    port = free_port()
    own = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    command = [str(program("litellm", "litellm")), *own]
    async with server(command, QUIET, folder, port=port, ready="/health/liveliness") as address:
        yield address


@pytest.mark.client("LiteLLM", "chat", "streaming", "tools", "errors")
async def test_litellm_is_a_client_of_the_server(world: World) -> None:
    world.says(
        "Hello.", "Hello again.", Reply("", calls=(Call("client__clock", "{}", id="c1"),), finish_reason="tool_call")
    )
    python = program("litellm", "python")
    async with served(world) as http:
        command = [str(python), "-c", CLIENT, f"{str(http.base_url).rstrip('/')}/v1"]
        ran = await anyio.run_process(command, env={**os.environ, **QUIET}, check=False)

    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    last = ran.stdout.decode().strip().splitlines()[-1]
    assert json.loads(last) == ["Hello.", True, "Hello again.", "clock", "NotFoundError"]


@pytest.mark.client("LiteLLM proxy", "chat", "streaming")
async def test_litellms_proxy_stands_before_the_server(world: World, tmp_path: Path) -> None:
    world.says("Hello.", "Hello again.")
    async with (
        served(world) as http,
        litellm_proxy(tmp_path, str(http.base_url).rstrip("/"), "pane") as address,
        openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="sk-none", max_retries=0) as client,
    ):
        whole = await client.chat.completions.create(model="pane", messages=[{"role": "user", "content": "Hi?"}])
        stream = await client.chat.completions.create(
            model="pane", messages=[{"role": "user", "content": "Hi?"}], stream=True
        )
        text = "".join([part.choices[0].delta.content or "" async for part in stream if part.choices])

    assert (whole.choices[0].message.content, text) == ("Hello.", "Hello again.")


async def test_litellms_proxy_is_the_provider_of_an_agent(tmp_path: Path) -> None:
    # The proxy asks which models there are when it starts.
    models = json_answer(200, {"object": "list", "data": []})
    async with (
        running(models, openai_chat.answer(WireReply(text=("Hello.",)))) as upstream,
        litellm_proxy(tmp_path, upstream.url, "gpt-4o") as address,
    ):
        environ = {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "sk-none"}
        world = World(tmp_path / "agents", environ=environ)
        world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nfinders: false\n")
        async with world.pane() as pane:
            session = await pane.sessions.create()
            answer = await pane.ask(session.id, "Hi?")
            calls = (await pane.sessions.calls(session.id)).calls

    assert answer.text == "Hello."
    assert [(call.model, call.outcome, call.seen) for call in calls if call.purpose == "answer"] == [
        ("openai:gpt-4o", "complete", True)
    ]
