"""Another maker's agent for the browser tests: OpenAI's own client, through the X-ray door of the server."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import openai

from browser.place import Place, tool_call

REMINDER = "<system-reminder>\nContents of /home/me/AGENTS.md:\n# House rules\nTea is at {time}.\n</system-reminder>\n"
SYSTEM = "You help with files.\n# Style\n" + "Be brief and plain. " * 300 + "\n# Environment\n- Platform: moon\n"
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": about, "parameters": {"type": "object"}}}
    for name, about in (
        ("read_file", "Read a file. " * 20),
        ("mcp__clock__now", "Tell the time. " * 30),
        ("write_file", "Write a file. " * 10),
    )
]


class Program:
    """An agent that asks its model, reads a file each time it is told to, and asks again."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._client = openai.OpenAI(
            base_url=f"{place.url}/xray/openai/v1",
            api_key="sk-planted-key-0123456789",
            default_headers={"X-Session-Id": uuid4().hex, "User-Agent": "Harbour/3.1"},
            max_retries=0,
        )
        self._messages: list[Any] = [{"role": "system", "content": SYSTEM}]

    def asks(self, message: str, *answers: str, cached: int = 0, time: str = "four") -> None:
        """Have one turn: every answer but the last asks to read the same file."""
        note = REMINDER.format(time=time)
        if len(self._messages) > 1:
            # The note at the beginning is written again, as some programs do, and breaks the prefix.
            self._messages[1]["content"][0]["text"] = note
            self._messages.append({"role": "user", "content": message})
        else:
            content = [{"type": "text", "text": note}, {"type": "text", "text": message}]
            self._messages.append({"role": "user", "content": content})
        for number, answer in enumerate(answers):
            more = number < len(answers) - 1
            id_ = f"call_{len(self._messages)}"
            calls = (tool_call(id_, "read_file", path="/home/me/note.txt"),) if more else ()
            self._place.model.says(answer, calls=calls, tokens=(2400 + 200 * len(self._messages), 9, cached))
            said = self._client.chat.completions.create(
                model="gpt-4o",
                messages=self._messages,
                tools=TOOLS,
                stream=True,
                stream_options={"include_usage": True},
            )
            text = "".join(chunk.choices[0].delta.content or "" for chunk in said if chunk.choices)
            self._said(text, id_ if more else None)

    def close(self) -> None:
        self._client.close()

    def _said(self, text: str, call: str | None) -> None:
        if call is None:
            self._messages.append({"role": "assistant", "content": text})
            return
        function = {"name": "read_file", "arguments": '{"path": "/home/me/note.txt"}'}
        made = [{"id": call, "type": "function", "function": function}]
        self._messages.append({"role": "assistant", "content": text, "tool_calls": made})
        self._messages.append({"role": "tool", "tool_call_id": call, "content": "The note says 42. " * 20})
