"""Run a wire server as a process: `PYTHONPATH=tests python -m wire --protocol openai --port 0 --script answers.json`.

It prints its address on the first line. The script is a JSON list; each answer is an object with the fields of
`WireReply` (a `text` may be one string, `calls` are objects with `id`, `name` and `arguments`), or with `status`
and `message` for an error.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Answer, running

COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "written_tokens")


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protocol", choices=("openai", "responses", "anthropic", "google"), default="openai")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True)
    chosen = parser.parse_args()
    answers = [
        _answer(chosen.protocol, {"id": f"msg_{number}", **entry})
        for number, entry in enumerate(json.loads(chosen.script.read_text("utf-8")), 1)
    ]
    asyncio.run(_serve(answers, chosen.port))


async def _serve(answers: list[Answer], port: int) -> None:
    async with running(*answers, port=port) as wire:
        sys.stdout.write(f"{wire.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def _answer(protocol: str, entry: dict[str, Any]) -> Answer:
    if "status" in entry:
        return _problem(protocol, entry["status"], entry.get("message", ""), entry.get("headers"))
    reply = WireReply(
        text=_pieces(entry.get("text", ())),
        thinking=_pieces(entry.get("thinking", ())),
        calls=tuple(
            WireCall(call["id"], call["name"], _pieces(call.get("arguments", "{}"))) for call in entry.get("calls", ())
        ),
        finish=entry.get("finish"),
        id=entry["id"],
        **{name: entry[name] for name in COUNTS if name in entry},
    )
    speak = {
        "openai": openai_chat.answer,
        "responses": openai_responses.answer,
        "anthropic": anthropic_messages.answer,
        "google": google_gemini.answer,
    }
    return speak[protocol](reply)


def _problem(protocol: str, status: int, message: str, headers: dict[str, str] | None) -> Answer:
    if protocol == "anthropic":
        return anthropic_messages.problem(status, message, type_="api_error", headers=headers)
    if protocol == "google":
        return google_gemini.problem(status, message, code="UNKNOWN")
    return openai_chat.problem(status, message, headers=headers)


def _pieces(text: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


if __name__ == "__main__":
    main()
