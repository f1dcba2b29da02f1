"""Phoenix shows a turn of ours: its spans follow the conventions for generative AI, which Phoenix reads."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from compat.process import program, server
from ports import free_port

TURN = Path(__file__).parent / "turn.py"


async def _spans(address: str, count: int) -> dict[str, list[Any]]:
    """Return the spans that Phoenix has by now, by kind, once there are so many."""
    async with httpx2.AsyncClient(base_url=address) as client:
        while True:
            answer = await client.get("/v1/projects/default/spans", params={"limit": 50})
            listed: list[Any] = answer.json().get("data", []) if answer.is_success else []
            if len(listed) >= count:
                break
            await anyio.sleep(0.2)
    found: dict[str, list[Any]] = {}
    for span in sorted(listed, key=lambda span: span["start_time"]):
        found.setdefault(span["span_kind"], []).append(span["attributes"])
    return found


@pytest.mark.client("Phoenix", "calls", "messages", "tools", "usage")
async def test_phoenix_shows_the_calls_messages_tools_and_tokens_of_a_turn(tmp_path: Path) -> None:
    port = free_port()
    places = {"PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(free_port()), "PHOENIX_WORKING_DIR": str(tmp_path)}
    quiet = {"PHOENIX_TELEMETRY_ENABLED": "false", "PHOENIX_HOST": "127.0.0.1"}
    command = [str(program("phoenix", "phoenix")), "serve"]
    async with server(command, {**places, **quiet}, tmp_path, port=port, ready="/healthz") as address:
        content = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
        environ = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address, **content}
        ran = await anyio.run_process([sys.executable, str(TURN), str(tmp_path / "agents")], env=environ)
        spans = await _spans(address, 5)

    session = ran.stdout.decode().strip()
    (agent,), (first, last), (used,) = spans["AGENT"], spans["LLM"], spans["TOOL"]
    assert {one["session.id"] for one in (agent, first, last, used)} == {session}
    assert (agent["llm.token_count.prompt"], agent["llm.token_count.completion"]) == (31, 9)
    said = "llm.output_messages.0.message"
    assert (first[f"{said}.content"], first[f"{said}.finish_reason"]) == ("I look.", "tool_call")
    call = f"{said}.tool_calls.0.tool_call"
    assert [first[f"{call}.{name}"] for name in ("id", "function.name", "function.arguments")] == [
        "c1",
        "files__read",
        '{"path": "a"}',
    ]
    assert '"name": "files__read"' in first["llm.tools.0.tool.json_schema"]
    assert first["llm.token_count.prompt_details.cache_read"] == 5
    assert (used["tool.name"], used["tool.parameters.path"], used["output.value"]) == ("read", "a", "contents of a")
    contents = [value for name, value in sorted(last.items()) if name.startswith("llm.input_messages.")]
    assert {"Read a.", "I look.", "contents of a"} <= {value for value in contents if isinstance(value, str)}
    assert last[f"{said}.content"] == "Done."
