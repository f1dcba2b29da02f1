"""Tell which software of other makers works with this, and what of it: from the results of the tests.

A test says what it proves: `@pytest.mark.client("LangChain", "context", "tools")`. `make test-compat` writes how each
of them ended into `compatibility.json` (`tests/client_results.py`), with the version of the client, and the page shows
what stands there.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "compatibility.json"


class Result(TypedDict):
    """What is known of one client: its version, and how the tests of each feature ended."""

    version: str
    features: dict[str, str]


SHOWN = {"passed": "✓", "skipped": "not run", "failed": "fails"}

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Clients of the server": (
        "They talk to the server as to their provider; only the base URL is another.",
        ("chat", "responses", "streaming", "tools", "errors"),
    ),
    "MCP clients": (
        "They use `windowpane mcp`. See [MCP](mcp.md).",
        ("pipes", "HTTP", "token", "tools", "resources", "errors"),
    ),
    "MCP servers": (
        "They are tool servers of an agent. See [agents](agents.md#tool-servers).",
        ("tools", "images", "links", "roots", "progress"),
    ),
    "Proxies": (
        "They stand before the server, with the configuration of [operations](operations.md).",
        ("prefix", "TLS", "streams", "WebSocket", "sizes"),
    ),
    "Frameworks": (
        "They run inside the program. See [integrations](integrations.md).",
        ("context", "tools", "memory", "failures"),
    ),
    "Programs that X-ray sees through": (
        "They pass the recording proxy, or what they leave behind is imported. See [X-ray](xray.md).",
        ("same bytes", "turns", "tools", "parts", "import"),
    ),
    "Telemetry": (
        "They send spans here, or show those of Windowpane. See [operations](operations.md).",
        ("calls", "messages", "tools", "usage"),
    ),
}
CLIENTS: dict[str, tuple[str, str, str]] = {
    "OpenAI for Python": ("Clients of the server", "requirements-dev.lock", "openai"),
    "OpenAI for Node": ("Clients of the server", "tests/clients/package-lock.json", "openai"),
    "Anthropic for Python": ("Clients of the server", "requirements-dev.lock", "anthropic"),
    "AG-UI client": ("Clients of the server", "tests/clients/package-lock.json", "@ag-ui/client"),
    "LiteLLM": ("Clients of the server", "requirements-litellm.lock", "litellm"),
    "LiteLLM proxy": ("Clients of the server", "requirements-litellm.lock", "litellm"),
    "AI SDK": ("Clients of the server", "tests/compat/package-lock.json", "ai"),
    "Anthropic for Node": ("Clients of the server", "tests/compat/package-lock.json", "@anthropic-ai/sdk"),
    "LangChain's OpenAI model": ("Clients of the server", "requirements-clients.lock", "langchain-openai"),
    "LangChain's Anthropic model": ("Clients of the server", "requirements-clients.lock", "langchain-anthropic"),
    "Instructor": ("Clients of the server", "requirements-clients.lock", "instructor"),
    "`llm`": ("Clients of the server", "requirements-clients.lock", "llm"),
    "LlamaIndex's OpenAI-like model": (
        "Clients of the server",
        "requirements-llama-index.lock",
        "llama-index-llms-openai-like",
    ),
    "Open WebUI": ("Clients of the server", "requirements-open-webui.lock", "open-webui"),
    "Claude Code as a client": (
        "Clients of the server",
        "tests/compat/package-lock.json",
        "@anthropic-ai/claude-code",
    ),
    "Codex as a client": ("Clients of the server", "tests/compat/package-lock.json", "@openai/codex"),
    "opencode as a client": ("Clients of the server", "tests/compat/package-lock.json", "opencode-linux-x64"),
    "Cline CLI as a client": ("Clients of the server", "tests/compat/package-lock.json", "@cline/cli-linux-x64"),
    "aider as a client": ("Clients of the server", "requirements-aider.lock", "aider-chat"),
    "MCP SDK for Python": ("MCP clients", "requirements-clients.lock", "mcp"),
    "MCP SDK for TypeScript": ("MCP clients", "tests/compat/package-lock.json", "@modelcontextprotocol/sdk"),
    "FastMCP": ("MCP clients", "requirements-clients.lock", "fastmcp"),
    "Pydantic AI as an MCP client": ("MCP clients", "requirements-clients.lock", "pydantic-ai-slim"),
    "OpenAI Agents SDK as an MCP client": ("MCP clients", "requirements-clients.lock", "openai-agents"),
    "LangChain MCP adapters": ("MCP clients", "requirements-mcp1.lock", "langchain-mcp-adapters"),
    "MCP server: time": ("MCP servers", "requirements-clients.lock", "mcp-server-time"),
    "MCP server: fetch": ("MCP servers", "requirements-clients.lock", "mcp-server-fetch"),
    "MCP server: git": ("MCP servers", "requirements-clients.lock", "mcp-server-git"),
    "MCP server: SQLite": ("MCP servers", "requirements-mcp1.lock", "mcp-server-sqlite"),
    **{
        f"MCP server: {name.replace('-', ' ')}": (
            "MCP servers",
            "tests/compat/package-lock.json",
            f"@modelcontextprotocol/server-{name}",
        )
        for name in ("filesystem", "memory", "sequential-thinking", "everything")
    },
    "MCP server: Playwright": ("MCP servers", "tests/compat/package-lock.json", "@playwright/mcp"),
    "nginx": ("Proxies", "", "nginx"),
    "Caddy": ("Proxies", "", "caddy"),
    "Pydantic AI": ("Frameworks", "requirements-dev.lock", "pydantic-ai-slim"),
    "OpenAI Agents SDK": ("Frameworks", "requirements-dev.lock", "openai-agents"),
    "Django": ("Frameworks", "requirements-dev.lock", "django"),
    "LangChain and LangGraph": ("Frameworks", "requirements-frameworks.lock", "langchain"),
    "Google ADK": ("Frameworks", "requirements-frameworks.lock", "google-adk"),
    "Microsoft Agent Framework": ("Frameworks", "requirements-frameworks.lock", "agent-framework-core"),
    "LlamaIndex": ("Frameworks", "requirements-frameworks.lock", "llama-index-core"),
    "Claude Code": ("Programs that X-ray sees through", "tests/compat/package-lock.json", "@anthropic-ai/claude-code"),
    "Codex": ("Programs that X-ray sees through", "tests/compat/package-lock.json", "@openai/codex"),
    "Gemini CLI": ("Programs that X-ray sees through", "tests/compat/package-lock.json", "@google/gemini-cli"),
    "opencode": ("Programs that X-ray sees through", "tests/compat/package-lock.json", "opencode-linux-x64"),
    "aider": ("Programs that X-ray sees through", "requirements-aider.lock", "aider-chat"),
    "Cline CLI": ("Programs that X-ray sees through", "tests/compat/package-lock.json", "@cline/cli-linux-x64"),
    "`openai` for Python": ("Programs that X-ray sees through", "requirements-dev.lock", "openai"),
    "`openai` for Node": ("Programs that X-ray sees through", "tests/clients/package-lock.json", "openai"),
    "`anthropic`": ("Programs that X-ray sees through", "requirements-dev.lock", "anthropic"),
    "`google-genai`": ("Programs that X-ray sees through", "requirements-dev.lock", "google-genai"),
    "`ollama` for Node": ("Programs that X-ray sees through", "tests/clients/package-lock.json", "ollama"),
    "OpenTelemetry SDK": ("Telemetry", "requirements-dev.lock", "opentelemetry-sdk"),
    "Phoenix": ("Telemetry", "requirements-phoenix.lock", "arize-phoenix"),
}
"""Where each stands, and the lock and name that tell its version."""


def compatibility_page() -> str:
    """Return the page."""
    results: dict[str, Result] = json.loads(RESULTS.read_text())
    parts = [
        "# Compatibility",
        "Each mark is a test with the real software that passed in the version that stands here, when\n"
        "`make test-compat` was run last. An empty cell is not tested, or does not apply.",
    ]
    for kind, (about, features) in KINDS.items():
        head = ["", "version", *features]
        rows = [
            [name, result["version"], *(SHOWN.get(result["features"].get(feature, ""), "") for feature in features)]
            for name, (own, _, _) in CLIENTS.items()
            if own == kind and (result := results.get(name))
        ]
        lines = [head, ["---"] * len(head), *rows]
        parts += [f"## {kind}", about, "\n".join(f"| {' | '.join(line)} |" for line in lines)]
    return "\n\n".join(parts) + "\n"


def check_mark(name: str, *features: str) -> None:
    """Make sure that what a test says it proves has a place on the page.

    Raises:
        ValueError: the client or a feature is in no table.
    """
    if name not in CLIENTS or not set(features) <= set(KINDS[CLIENTS[name][0]][1]):
        raise ValueError(f"docs/compatibility.py knows no {name}: {', '.join(features)}")


def installed_version(program: str) -> str:
    """Return the version of a program of the system, which no lock names; `?` where it is not there."""
    places = [ROOT / ".venv" / "proxies" / folder for folder in ("usr/sbin", "usr/bin")]
    found = shutil.which(program, path=os.pathsep.join(map(str, (os.environ["PATH"], "/usr/sbin", *places))))
    if found is None:
        return "?"
    asked = subprocess.run(
        [found, "version" if program == "caddy" else "-v"], capture_output=True, text=True, check=False
    )
    number = re.search(r"\d+(\.\d+)+", asked.stdout + asked.stderr)
    return number[0] if number else "?"


def version_of(name: str) -> str:
    """Return the version of a client that the locks name."""
    _, lock, package = CLIENTS[name]
    if not lock:
        return installed_version(package)
    text = (ROOT / lock).read_text()
    if lock.endswith(".json"):
        return str(json.loads(text)["packages"][f"node_modules/{package}"]["version"])
    found = re.search(rf"^{re.escape(package)}(?:\[[^\]]*\])?==(\S+)", text, re.MULTILINE)
    return found[1] if found else "?"
