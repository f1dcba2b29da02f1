"""A tool server over its pipes. What it offers stands in a file: a JSON list of names and descriptions.

A call answers with its own arguments.
"""

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer until the pipe closes."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": _result(message)}
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()


def _result(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        info = {"name": "tests", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if message["method"] == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        listed = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        return {"tools": [{"inputSchema": schema} | tool for tool in listed]}
    if message["method"] == "tools/call":
        given = json.dumps(message["params"].get("arguments"))
        return {"content": [{"type": "text", "text": given}]}
    return {}


if __name__ == "__main__":
    main()
