"""How far our count of a request's tokens is from counts that are not ours, with 2, 60 and 180 tools.

    export WINDOWPANE_BENCH_DATA=/path/to/data
    .venv/bin/python bench/tokens.py

Two references. LiteLLM's `token_counter` for OpenAI's rendering, in an environment of its own (`make
.venv/litellm/installed`; its wheel carries the vocabulary). And a real llama.cpp server (`make .venv/llama-installed`):
our count times the factor that ten calls of the conversation taught, without tools where they taught that the model is
not shown any, against what the server counts for the eleventh.
The server writes each prompt with its chat template and cuts it into its own tokens without reading it, which would
take minutes; one real call for each template shows that `prompt_tokens` is the same number. The template that comes
with the weights leaves tools out, so another one, in the form of Hermes, shows them.

Tools are those of `toucan_mcp_pool`. The data has the names and descriptions of their parameters; their types are
dealt out.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx2

from windowpane.context.calls import HIGHEST_FACTOR, LOWEST_FACTOR, CallEnded, TokenFactor, reported_factor
from windowpane.context.items import ItemRef
from windowpane.context.messages import Usage
from windowpane.context.request import CallSettings, OfferedTool, RequestMessage
from windowpane.text.tokens import Family, counted_tokens, family_for, family_of, tools_tokens

ROOT = Path(__file__).parent.parent
LITELLM = ROOT / ".venv" / "litellm" / "bin" / "python"
SIZES, DRAWS, CONVERSATIONS, CALLS = (2, 60, 180), 40, 10, 10
RULE = "You are a helpful assistant. Answer in short and plain sentences, and say so when you do not know."
SMALL = "openai:smollm2"
"""What an agent names the model of the llama.cpp server, with its address as OPENAI_BASE_URL."""

REPLY_TOKENS = 3
"""Every reply begins with so many tokens, which LiteLLM counts as input."""

COUNT = """
import json, sys
from litellm import token_counter
print(json.dumps([token_counter(model="gpt-4o", **case) for case in json.load(sys.stdin)]))
"""

HERMES = (
    "{% if tools %}{{ '<|im_start|>system\\n# Tools\\n\\nYou may call one or more functions.\\n<tools>' }}"
    "{% for tool in tools %}{{ '\\n' }}{{ tool | tojson }}{% endfor %}{{ '\\n</tools><|im_end|>\\n' }}{% endif %}"
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


class Case(NamedTuple):
    """A request, as we count it."""

    messages: tuple[RequestMessage, ...]
    tools: tuple[OfferedTool, ...]

    def counted(self, family: Family) -> int:
        return counted_tokens(self.messages, self.tools, family)

    def as_sent(self) -> dict[str, Any]:
        """Return the request as a client sends it."""
        functions = [
            {"name": tool.offered_name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in self.tools
        ]
        return {
            "messages": [{"role": message.role, "content": message.content} for message in self.messages],
            "tools": [{"type": "function", "function": function} for function in functions],
        }


class Pool:
    """Tools and texts to draw requests from."""

    def __init__(self, data: Path) -> None:
        with (data / "toucan_mcp_pool" / "items.jsonl").open(encoding="utf-8") as lines:
            self._rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        asked = ROOT / "bench" / "data" / "general_requests.txt"
        self._asked = asked.read_text(encoding="utf-8").splitlines()

    def conversation(self, chance: random.Random, size: int, calls: int) -> list[Case]:
        """Return the requests of a conversation, each with one more exchange than the one before."""
        tools = tuple(_tool(row, chance) for row in chance.sample(self._rows, size))
        messages = [RequestMessage(role="system", content=RULE, part="rules")]
        cases: list[Case] = []
        for _ in range(calls):
            messages.append(RequestMessage(role="user", content=chance.choice(self._asked), part="message"))
            cases.append(Case(tuple(messages), tools))
            answer = chance.choice(self._rows)["description"]
            messages.append(RequestMessage(role="assistant", content=answer, part="history"))
        return cases


def _tool(row: Mapping[str, Any], chance: random.Random) -> OfferedTool:
    pairs = [pair.partition(":") for pair in row["params"].split("; ") if pair]
    fields = {name.strip(): {**_type(chance), "description": about.strip()} for name, _, about in pairs}
    required = [name for name in fields if chance.random() < 0.5]
    schema = {"type": "object", "properties": fields, "required": required}
    name = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in row["name"])[:64]
    return OfferedTool(name, ItemRef("tool", row["name"], "pool"), row["description"], schema)


def _type(chance: random.Random) -> dict[str, Any]:
    inner = {"id": {"type": "integer"}, "label": {"type": "string", "description": "The name that is shown"}}
    kinds: Sequence[dict[str, Any]] = (
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "string", "enum": ["asc", "desc", "none"]},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": inner, "required": ["id"]},
    )
    return chance.choices(kinds, weights=(10, 3, 2, 2, 1, 2, 1))[0]


def report(name: str, size: int, pairs: Sequence[tuple[float, int]]) -> None:
    """Print how far counts are from their references."""
    off = [100 * abs(counted - reference) / reference for counted, reference in pairs]
    middle = median(reference for _, reference in pairs)
    print(f"{name:34} {size:5} {len(pairs):6} {middle:9,.0f} {median(off):8.2f} {max(off):7.2f}")


def against_litellm(pool: Pool) -> None:
    """Compare with LiteLLM's count of requests in a conversation."""
    if not LITELLM.exists():
        print("LiteLLM skipped: `make .venv/litellm/installed` builds its environment.")
        return
    cases = [(size, pool.conversation(random.Random(draw), size, 3)[-1]) for size in SIZES for draw in range(DRAWS)]
    environ = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    asked = json.dumps([case.as_sent() for _, case in cases])
    ran = subprocess.run([LITELLM, "-c", COUNT], input=asked, env=environ, text=True, check=True, capture_output=True)
    references = [count - REPLY_TOKENS for count in json.loads(ran.stdout.splitlines()[-1])]
    for size in SIZES:
        found = [
            (case.counted("openai"), count) for (of, case), count in zip(cases, references, strict=True) if of == size
        ]
        report("LiteLLM, OpenAI's rendering", size, found)


def against_llama(pool: Pool) -> None:
    """Compare with the count of a real server, after the calls that teach the factor."""
    sys.path.insert(0, str(ROOT / "tests"))
    from wire import llama

    if not llama.is_installed():
        print(f"llama.cpp skipped: {llama.MISSING}")
        return
    for name, template in (("llama.cpp, tools in the prompt", HERMES), ("llama.cpp, template without tools", "")):
        with llama.llama_server(8192, template) as address, httpx2.Client(base_url=address, timeout=300) as server:
            check(server, pool.conversation(random.Random(0), 2, 1)[0])
            for size in SIZES:
                report(name, size, [taught(server, pool, size, draw) for draw in range(CONVERSATIONS)])


def taught(server: httpx2.Client, pool: Pool, size: int, draw: int) -> tuple[float, int]:
    """Return our count of a conversation's last call times the learned factor, and the server's count."""
    *before, last = pool.conversation(random.Random(draw), size, CALLS + 1)
    known: TokenFactor | None = None
    for case in before:
        call = CallEnded(
            id="",
            outcome="complete",
            usage=Usage(input_tokens=prompt_tokens(server, case)),
            counted_tokens=case.counted(family_of(SMALL)),
            tools_tokens=tools_tokens(case.tools, family_of(SMALL)),
        )
        last_call = reported_factor(call)
        known = known.after(last_call) if known and last_call else last_call
    assert known is not None
    factor = min(max(known.factor, LOWEST_FACTOR), HIGHEST_FACTOR)
    family = family_for(CallSettings(model=SMALL, tools_shown=known.tools_shown))
    return last.counted(family) * factor, prompt_tokens(server, last)


def prompt_tokens(server: httpx2.Client, case: Case) -> int:
    """Return what the server counts, without letting its model read the prompt."""
    prompt = server.post("/apply-template", json=case.as_sent()).raise_for_status().json()["prompt"]
    asked = {"content": prompt, "add_special": True, "parse_special": True}
    return len(server.post("/tokenize", json=asked).raise_for_status().json()["tokens"])


def check(server: httpx2.Client, case: Case) -> None:
    """Let the model read one prompt: the usage that the server reports is what it counted."""
    asked = {**case.as_sent(), "model": "smollm2", "max_tokens": 1}
    reported = server.post("/v1/chat/completions", json=asked).raise_for_status().json()["usage"]["prompt_tokens"]
    counted = prompt_tokens(server, case)
    if reported != counted:
        raise RuntimeError(f"the server reports {reported} tokens, and counts {counted}")


def main() -> None:
    """Print the differences."""
    if "WINDOWPANE_BENCH_DATA" not in os.environ:
        print("Token counts skipped: WINDOWPANE_BENCH_DATA does not name a folder with the data.")
        return
    pool = Pool(Path(os.environ["WINDOWPANE_BENCH_DATA"]))
    print(f"{'difference in %':34} {'tools':>5} {'cases':>6} {'tokens':>9} {'median':>8} {'worst':>7}")
    against_litellm(pool)
    against_llama(pool)


if __name__ == "__main__":
    main()
