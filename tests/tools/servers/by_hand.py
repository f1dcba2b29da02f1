"""A tool server of the first protocol, written by hand so that it can also do what no library would let it do.

    by_hand.py MODE [FILE]

It speaks over its pipes: `initialize`, `tools/list`, `tools/call`, and nothing newer. FILE collects one line for each
call that ran.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
NOTES = Path(sys.argv[2]) if len(sys.argv) > 2 else None

JSON = dict[str, Any]
PLAIN_TOOLS: list[JSON] = [
    {"name": name, "description": f"Do {name}.", "inputSchema": {"type": "object", "properties": {}}}
    for name in ("echo", "pid", "crash", "sleep", "grow", "ask", "spawn")
]
ODD_TOOLS: list[Any] = [
    {"name": "good", "description": "Works.", "inputSchema": {"type": "object"}, "outputSchema": {"type": "nonsense"}},
    {"name": "good", "description": "Hides behind the first.", "inputSchema": {"type": "object"}},
    {"name": "no_schema"},
    {"name": "text_schema", "inputSchema": "object"},
    {"name": "list_schema", "inputSchema": {"type": "array"}},
    {"name": "bad_schema", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
    {"name": "typeless", "inputSchema": {"properties": {"a": {"type": "string"}}}, "title": "Has a title", "icons": 7},
    {"name": "größe: 日本 / tool", "description": 5, "inputSchema": {"type": "object"}},
    {"name": "header", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": ""}}}},
    {"description": "nameless"},
    "not even an object",
]


def main() -> None:
    """Answer until the pipe closes."""
    if MODE == "dies":
        sys.exit("config file missing\nset WEATHER_KEY first")
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "mute":
        sys.stderr.write("waiting for a licence\n")
        sys.stderr.flush()
    if MODE == "chatter":
        sys.stdout.write("Welcome to the chatter tool!\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\xff\xfe not text\n")
        sys.stderr.write("x" * 1_000_000 + "\n")
        sys.stderr.flush()
    if MODE == "babble":
        sys.stdout.write("Welcome! Type help.\n")
        sys.stdout.flush()
    for line in sys.stdin:
        if MODE not in ("mute", "babble"):
            handle(json.loads(line))
        sys.stdout.flush()
    while MODE == "stubborn":
        time.sleep(1)


def handle(message: JSON) -> None:
    """Answer one message."""
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        if MODE == "future":
            return answer(number, {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": INFO})
        if MODE == "broken":
            return answer(number, {"hello": "world"})
        answer(number, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": INFO})
    elif method == "tools/list":
        params: JSON = message.get("params") or {}
        listed(number, params.get("cursor"))
    elif method == "tools/call":
        call(number, message["params"]["name"], message["params"].get("arguments") or {})
    elif method is None and number == "ask-1":
        answer(pending.pop(), text(json.dumps(message.get("error") or message.get("result"))))
    elif number is not None:
        send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}})
    return None


INFO = {"name": "by-hand", "version": "0.9"}
extra: list[JSON] = []
pending: list[Any] = []


def listed(number: Any, cursor: str | None) -> None:
    """Send a page of tools."""
    if MODE == "odd":
        return answer(number, {"tools": ODD_TOOLS})
    if MODE == "endless":
        return answer(number, {"tools": PLAIN_TOOLS[:1], "nextCursor": "again"})
    if MODE == "many":
        page = int(cursor or "0")
        schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
        names = [f"tool_{page * 500 + i}" for i in range(500)]
        body: JSON = {"tools": [{"name": name, "inputSchema": schema} for name in names]}
        return answer(number, body | ({"nextCursor": str(page + 1)} if page < 5 else {}))
    return answer(number, {"tools": PLAIN_TOOLS + extra})


def call(number: Any, name: str, arguments: JSON) -> None:
    """Run a tool."""
    if NOTES:
        with NOTES.open("a") as notes:
            notes.write(f"{name}\n")
    if name == "crash":
        sys.stderr.write("out of memory\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "sleep":
        time.sleep(arguments["seconds"])
        answer(number, text("slept"))
    elif name == "grow":
        extra.append({"name": arguments["name"], "inputSchema": {"type": "object"}})
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        answer(number, text("grown"))
    elif name == "ask":
        pending.append(number)
        question: JSON = {
            "messages": [],
            "maxTokens": 5,
            "message": "?",
            "requestedSchema": {"type": "object", "properties": {}},
        }
        send({"jsonrpc": "2.0", "id": "ask-1", "method": arguments["method"], "params": question})
    elif name == "spawn":
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=sys.stdin)
        answer(number, text(str(child.pid)))
    elif name == "nonsense":
        answer(number, {"content": "this is not a list of blocks"})
    elif name in ("pid", "echo") or MODE == "odd":
        answer(number, text(str(os.getpid()) if name == "pid" else json.dumps(arguments)))
    else:
        send({"jsonrpc": "2.0", "id": number, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})


def text(words: str) -> JSON:
    """Return a result of one text."""
    return {"content": [{"type": "text", "text": words}]}


def answer(number: Any, result: JSON) -> None:
    """Send a result."""
    send({"jsonrpc": "2.0", "id": number, "result": result})


def send(message: JSON) -> None:
    """Write a message, and in one mode some chatter around it."""
    if MODE == "chatter":
        sys.stdout.write("debug: about to answer\n")
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


main()
