"""Measure which tools of real MCP servers are selected, and whether one query finds those that are not.

    export WINDOWPANE_BENCH_SERVERS=/path/of/a/scratch/folder
    npm install --prefix "$WINDOWPANE_BENCH_SERVERS" @modelcontextprotocol/server-everything \\
        @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-github \\
        @modelcontextprotocol/server-memory @modelcontextprotocol/server-sequential-thinking @playwright/mcp
    python -m venv "$WINDOWPANE_BENCH_SERVERS/python"
    "$WINDOWPANE_BENCH_SERVERS/python/bin/pip" install mcp-server-fetch mcp-server-git mcp-server-time
    python bench/real_tools.py

The servers are started and asked for their tools; no tool is called. `bench/data/real_tools.jsonl` has the messages
with the tools that each needs (any of those named together will do) and a short query, without the tool's name, by
which a model would ask for it. They were written before the first run, and looked at since. Those of
`real_tools_later.jsonl` were written before what the first ones had taught was built.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio

from remembered import Texts, cache_folder
from windowpane.context.items import ItemRef, Tool
from windowpane.context.messages import UserMessage
from windowpane.request.assemble import item_tokens
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.request.selector import Selection
from windowpane.search.index import ItemIndex
from windowpane.tools.base import ServerConfig
from windowpane.tools.mcp import McpToolbox

HERE = Path(__file__).parent
NODE = {
    "everything": ("mcp-server-everything",),
    "filesystem": ("mcp-server-filesystem", "."),
    "github": ("mcp-server-github",),
    "memory": ("mcp-server-memory",),
    "playwright": ("playwright-mcp",),
    "sequential-thinking": ("mcp-server-sequential-thinking",),
}
PYTHON = {"fetch": ("mcp-server-fetch",), "git": ("mcp-server-git",), "time": ("mcp-server-time",)}
ANSWERS = 10
"""How many tools a query for tools is answered with."""

PATIENCE_S = 120.0
SEARCH = {"deadline_s": 60.0}


@dataclass(frozen=True)
class NeededTool:
    """One thing that a message needs: any of these tools does it."""

    tools: frozenset[str]
    query: str

    def met_by(self, refs: Sequence[ItemRef]) -> bool:
        return any(str(ref) in self.tools for ref in refs)


@dataclass(frozen=True)
class LabelledMessage:
    """A message with what it needs."""

    message: str
    needs: tuple[NeededTool, ...]


def labelled(name: str) -> list[LabelledMessage]:
    """Return the messages of a file, as they were written down."""
    rows = [json.loads(line) for line in (HERE / "data" / name).read_text(encoding="utf-8").splitlines()]
    return [
        LabelledMessage(
            row["message"], tuple(NeededTool(frozenset(need["tools"]), need["query"]) for need in row["needs"])
        )
        for row in rows
    ]


def general() -> list[str]:
    """Return the requests that need no tool."""
    return (HERE / "data" / "general_requests.txt").read_text(encoding="utf-8").splitlines()


async def tools_of_servers(folder: Path, work: Path) -> tuple[Tool, ...]:
    """Start the servers, return their tools, and stop them."""
    subprocess.run(["git", "init", "--quiet", str(work)], check=True)  # noqa: ASYNC221 (nothing else runs)
    commands = {name: (folder / "node_modules" / ".bin" / own[0], own[1:]) for name, own in NODE.items()}
    commands |= {name: (folder / "python" / "bin" / own[0], own[1:]) for name, own in PYTHON.items()}
    configs = [
        ServerConfig(name=name, command=str(file), args=arguments, cwd=str(work), include="agent")
        for name, (file, arguments) in commands.items()
    ]
    async with McpToolbox() as toolbox:
        await toolbox.configure(configs)
        await toolbox.settled(PATIENCE_S)
        servers = toolbox.servers()
    for server in servers:
        print(f"| {server.name} | {server.version} | {len(server.tools)} | {server.error or server.state} |")
    return tuple(tool for server in servers for tool in server.tools)


def ranked(selection: Selection) -> list[ItemRef]:
    """Return every candidate, best first, however it was decided."""
    found = [(chosen.evidence.rank or 0, chosen.item.ref) for chosen in selection.chosen]
    found += [(left.evidence.rank or 0, left.ref) for left in selection.left_out if left.evidence]
    return [ref for _, ref in sorted(found, key=lambda pair: pair[0])]


async def figures(selector: HybridSelector, tools: Sequence[Tool], tokens: Mapping[ItemRef, int], name: str) -> str:
    """Return the line of a file of labelled messages, and print what was missed."""
    needed = selected = top_ten = found = complete = 0
    counts: list[int] = []
    costs: list[int] = []
    messages = labelled(name)
    for labels in messages:
        selection = await selector.select(labels.message, (), tools, SEARCH)
        taken, order = [chosen.item.ref for chosen in selection.chosen], ranked(selection)
        missing = [need for need in labels.needs if not need.met_by(taken)]
        counts.append(len(taken))
        costs.append(sum(tokens[ref] for ref in taken))
        needed += len(labels.needs)
        selected += len(labels.needs) - len(missing)
        top_ten += sum(need.met_by(order[:10]) for need in labels.needs)
        complete += not missing
        for need in labels.needs:
            # As the finder does: with the message that the model is working on.
            asked = UserMessage(content=labels.message, seq=0, at=datetime.now(UTC))
            answer = ranked(await selector.select(need.query, (asked,), tools, SEARCH))[:ANSWERS]
            found += need.met_by(answer)
            if need in missing or not need.met_by(answer):
                print(f"  {labels.message!r}: {'|'.join(sorted(need.tools))}", end="")
                print(f" selected: {need not in missing}, {need.query!r} finds it: {need.met_by(answer)}")
    taken = f"{sum(counts) / len(counts):.1f} (most {max(counts)}) | {sum(costs) / len(costs):.0f}"
    return f"| {name} | {len(messages)} | {needed} | {top_ten} | {selected} | {complete} | {found} | {taken} |"


async def measure(tools: Sequence[Tool]) -> None:
    """Print what is selected, ranked and found for the labelled messages, and what general requests cost."""
    selector = HybridSelector(ItemIndex(Texts(cache_folder())))
    tokens = {tool.ref: item_tokens(tool, f"{tool.server}__{tool.name}") for tool in tools}
    lines = [await figures(selector, tools, tokens, name) for name in ("real_tools.jsonl", "real_tools_later.jsonl")]
    print("\n| file | messages | needed | in the first ten | selected | all needed | by one query | tools | tokens |")
    print("|---|---|---|---|---|---|---|---|---|", *lines, sep="\n")
    spent: list[int] = []
    for message in general():
        selection = await selector.select(message, (), tools, SEARCH)
        spent.append(sum(tokens[chosen.item.ref] for chosen in selection.chosen))
    silent = sum(cost == 0 for cost in spent) / len(spent)
    mean = sum(spent) / len(spent)
    print(f"\nGeneral requests: {len(spent)}, without a tool {silent:.0%}, {mean:.0f} tokens on average.")


def main() -> None:
    """Start the servers of the scratch folder and print the tables."""
    if "WINDOWPANE_BENCH_SERVERS" not in os.environ:
        print("Real tools skipped: WINDOWPANE_BENCH_SERVERS does not name a folder with the servers.")
        return
    folder = Path(os.environ["WINDOWPANE_BENCH_SERVERS"])
    print("| server | version | tools | state |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        tools = anyio.run(tools_of_servers, folder, Path(work))
    print()
    if tools:
        anyio.run(measure, tools)
    else:
        sys.exit("no server answered")


if __name__ == "__main__":
    main()
