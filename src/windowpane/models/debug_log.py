"""Print each request to stderr before it is sent, for people who look for a fault.

`LLM_DEBUG_LOG=true` prints who calls which model with what, each message cut at 500 characters; with
`LLM_DEBUG_VERBOSE=true` as well, nothing is cut. Text stands behind a bar, so that none of it can pass for a line of
the log. Whatever looks like a secret is taken out first, and so is every key that the environment holds.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count

from windowpane.context.request import CallSettings, OfferedTool, RequestMessage
from windowpane.text.redact import redacted

LOG, VERBOSE = "LLM_DEBUG_LOG", "LLM_DEBUG_VERBOSE"
CUT_CHARACTERS = 500
_MODELS = __name__.rpartition(".")[0]
_ON = frozenset(("1", "true", "yes", "on"))
_numbers = count(1)

_SECRET_VARIABLE = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 8


def log_request(
    model: str,
    messages: Sequence[RequestMessage],
    tools: Sequence[OfferedTool],
    settings: CallSettings,
    *,
    environ: Mapping[str, str],
    attempt: int = 1,
) -> None:
    """Print a request that is about to be sent, if the environment asks for it. `attempt` counts its tries."""
    if not _on(environ, LOG):
        return
    limit = None if _on(environ, VERBOSE) else CUT_CHARACTERS
    lines = _lines(model, messages, tools, settings, limit=limit, secrets=_secrets(environ), attempt=attempt)
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace").decode()
    # A log that cannot be written is no reason to fail a turn.
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _lines(
    model: str,
    messages: Sequence[RequestMessage],
    tools: Sequence[OfferedTool],
    settings: CallSettings,
    *,
    limit: int | None,
    secrets: Sequence[str],
    attempt: int,
) -> Iterator[str]:
    def body(text: str) -> Iterator[str]:
        return _body(redacted(text, secrets), limit)

    provider, _, name = model.partition(":")
    chosen = {"temperature": settings.temperature, "top_p": settings.top_p, "max_output": settings.max_output_tokens}
    characters = sum(len(message.content) for message in messages)
    yield f"──── LLM request {next(_numbers)}{f', attempt {attempt}' if attempt > 1 else ''} ────"
    yield f"call site: {_call_site()}"
    yield f"provider: {provider}"
    yield f"model: {name or provider}"
    yield "stream: true"
    yield f"mode: {settings.mode}"
    yield "settings: " + (", ".join(f"{key}={value}" for key, value in chosen.items() if value is not None) or "none")
    if forced := settings.reply_options.must_call:
        yield f"must call: {', '.join(map(str, forced))}"
    if form := settings.reply_options.response_format:
        yield f"response format: {'any JSON object' if form.schema is None else f'JSON {form.name}'.rstrip()}"
    yield f"tools: {len(tools)}{' – ' if tools else ''}{', '.join(tool.offered_name for tool in tools)}"
    for tool in tools if limit is None else ():
        yield f"  {tool.offered_name}"
        yield from body(f"{tool.description}\n{json.dumps(tool.parameters, ensure_ascii=False)}")
    yield f"messages: {len(messages)}, {characters:,} characters"
    for number, message in enumerate(messages, 1):
        place = f"{message.part} {message.name}".strip()
        yield f"  {number} {message.role} ({place}), {len(message.content):,} characters"
        yield from body(message.content)
        for call in message.tool_calls:
            yield f"    calls {_printable(call.offered_name)} ({_printable(call.id)})"
            yield from body(call.arguments)
    yield "────"


def _body(text: str, limit: int | None) -> Iterator[str]:
    shown = text if limit is None else text[:limit]
    for line in shown.split("\n") if shown else ():
        yield f"    │ {_printable(line)}"
    if len(shown) < len(text):
        yield f"    … {len(text) - len(shown):,} more characters"


def _printable(line: str) -> str:
    """Return a line that a terminal prints and does nothing else with."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() or char == "\t" else ascii(char)[1:-1] for char in line)


def _call_site() -> str:
    """Return the function outside this package that called the model."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(f"{_MODELS}."):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}" if frame else "?"


def _on(environ: Mapping[str, str], variable: str) -> bool:
    return environ.get(variable, "").strip().lower() in _ON


def _secrets(environ: Mapping[str, str]) -> list[str]:
    """Return the values of variables that are named like secrets, longest first, so that none hides in another."""
    found = (value for name, value in environ.items() if _SECRET_VARIABLE.search(name))
    return sorted({value for value in found if len(value) >= _SHORTEST_SECRET}, key=len, reverse=True)
