"""Tell which software of other makers is tested against this, and what of it: from the marks of the tests.

A test says so itself: `@pytest.mark.client("LangChain", "context", "tools")`. Versions are those of the locks.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Clients of the server": (
        "They talk to the server as to their provider; only the base URL is another.",
        ("chat", "responses", "streaming", "tools", "errors"),
    ),
    "Frameworks": (
        "They run inside the program. See [integrations](integrations.md).",
        ("context", "tools", "memory", "failures"),
    ),
    "Programs that X-ray sees through": (
        "They pass the recording proxy, or what they leave behind is imported. See [X-ray](xray.md).",
        ("turns", "tools", "same bytes", "import"),
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
    "OpenTelemetry SDK": ("Telemetry", "requirements-dev.lock", "opentelemetry-sdk"),
    "Phoenix": ("Telemetry", "requirements-phoenix.lock", "arize-phoenix"),
}
"""Where each stands, and the lock and name that tell its version."""


def compatibility_page() -> str:
    """Return the page.

    Raises:
        ValueError: a test names a client or a feature that is in no table.
    """
    proved = _proved()
    parts = [
        "# Compatibility",
        "Each mark is a test with the real software, in the version that stands here: with `make test`, or, for what\n"
        "pulls in much, with `make test-compat`. An empty cell is not tested, or does not apply.",
    ]
    for kind, (about, features) in KINDS.items():
        head = ["", "version", *features]
        rows = [
            [name, _version(lock, package), *("✓" if feature in proved[name] else "" for feature in features)]
            for name, (own, lock, package) in CLIENTS.items()
            if own == kind and name in proved
        ]
        lines = [head, ["---"] * len(head), *rows]
        parts += [f"## {kind}", about, "\n".join(f"| {' | '.join(line)} |" for line in lines)]
    return "\n\n".join(parts) + "\n"


def _proved() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "node_modules" in path.parts:
            continue
        for name, *features in _marks(path):
            if name not in CLIENTS or not set(features) <= set(KINDS[CLIENTS[name][0]][1]):
                raise ValueError(f"{path.relative_to(ROOT)}: docs/compatibility.py knows no {name}: {features}")
            found.setdefault(name, set()).update(features)
    return found


def _marks(path: Path) -> Iterator[list[str]]:
    text = path.read_text()
    if "mark.client" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.client":
            yield [str(ast.literal_eval(argument)) for argument in node.args]


def _version(lock: str, package: str) -> str:
    text = (ROOT / lock).read_text()
    if lock.endswith(".json"):
        return str(json.loads(text)["packages"][f"node_modules/{package}"]["version"])
    found = re.search(rf"^{re.escape(package)}(?:\[[^\]]*\])?==(\S+)", text, re.MULTILINE)
    return found[1] if found else "?"
