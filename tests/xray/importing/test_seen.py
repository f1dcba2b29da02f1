"""A conversation that was recorded is not imported beside its record: its calls would count twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic

from windowpane.testing import World
from windowpane.xray.importing.files import read_file
from windowpane.xray.importing.writer import ImportedSession, Importer
from wire import anthropic_messages
from wire.reply import WireCall, WireReply
from wire.server import running
from xray.importing import logs
from xray.place import xray

MARKS = {"X-Claude-Code-Session-Id": "c0ffee", "User-Agent": "claude-cli/2.1.326"}
ANSWERS = (
    WireReply(text=("I look.",), calls=(WireCall("toolu_1", "Read", ("{}",)), WireCall("toolu_2", "Run", ("{}",)))),
    WireReply(text=("It is 42.",)),
)


async def test_calls_of_a_log_that_the_proxy_recorded_are_left_out_and_counted(world: World, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(line)}\n" for line in [*logs.claude_old(), *logs.claude_more()]))
    (told,) = read_file(log).sessions
    answers = [anthropic_messages.document(answer) for answer in ANSWERS]
    async with running(*answers) as server, xray(world, server.url) as proxy:
        url = f"{proxy.url}/anthropic"
        async with anthropic.AsyncAnthropic(base_url=url, api_key="sk-ant-planted", default_headers=MARKS) as client:
            tools: list[Any] = logs.TOOLS
            messages: list[Any] = [{"role": "user", "content": [logs.ASK]}]
            for results in ([logs.READ_RESULT, logs.RUN_RESULT], []):
                said = await client.messages.create(
                    model="claude-opus-4-6", max_tokens=99, messages=messages, tools=tools
                )
                messages.append({"role": "assistant", "content": [block.model_dump() for block in said.content]})
                messages.append({"role": "user", "content": results})
        (recorded,) = await proxy.sessions()
        imported = await Importer(proxy.engine.store, "local").write(told)
        again = await Importer(proxy.engine.store, "local").write(told)
        others = await Importer(proxy.engine.store, "another").write(told)
        listed = await proxy.sessions()
        calls = (await proxy.pane.sessions.calls(imported.id)).calls

    assert imported == ImportedSession(imported.id, calls=2, known=0, recorded=2)
    assert again == ImportedSession(imported.id, calls=0, known=2, recorded=2)
    assert others == ImportedSession(others.id, calls=4, known=0, recorded=0)
    assert set(listed) == {recorded, imported.id}
    assert [call.outcome for call in calls] == ["retried", "complete"]
