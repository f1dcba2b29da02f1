"""What broke the prefix of a real client's calls is named with the part to blame, the reason and what it cost."""

from __future__ import annotations

import copy
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from windowpane.testing import World
from wire import anthropic_messages, openai_chat
from wire.reply import WireReply
from wire.server import running
from xray.place import standing_for, xray

Request = dict[str, Any]
MARK = {"type": "ephemeral"}


def words(subject: str) -> str:
    return "".join(f"Line {number} about {subject} is here to be read. " for number in range(120))


def text(told: str) -> dict[str, Any]:
    return {"type": "text", "text": told}


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": words(name), "input_schema": {"type": "object", "properties": {}}}


MEMORY = "<system-reminder>\nContents of /home/me/CLAUDE.md:\n# Rules\nTea is at four.\n</system-reminder>\n"


def claude() -> Request:
    return {
        "model": "claude-opus-4-6",
        "max_tokens": 99,
        "tools": [tool("Read"), tool("Write"), tool("Search")],
        "system": [text("You help.\n# Style\n" + words("style")), text("# Clock\nIt is 10:00.\n" + words("time"))],
        "messages": [
            {"role": "user", "content": [text(MEMORY), text("Hello. " + words("boats"))]},
            {"role": "assistant", "content": [text("Hello.")]},
            {"role": "user", "content": [text("What is new? " + words("news"))]},
        ],
    }


def marked(request: Request) -> Request:
    request = copy.deepcopy(request)
    request["messages"][-1]["content"][-1]["cache_control"] = MARK
    return request


def gone_on(request: Request) -> Request:
    """Return the next request of a conversation."""
    request = copy.deepcopy(request)
    request["messages"] += [
        {"role": "assistant", "content": [text("Nothing.")]},
        {"role": "user", "content": [text("Thank you.")]},
    ]
    return request


def tools_reordered(request: Request) -> None:
    request["tools"] = [request["tools"][at] for at in (1, 0, 2)]


def schema_changed(request: Request) -> None:
    request["tools"][1]["input_schema"]["properties"]["path"] = {"type": "string"}


def clock_moved(request: Request) -> None:
    request["system"][1]["text"] = request["system"][1]["text"].replace("10:00", "10:01")


def memory_edited(request: Request) -> None:
    request["messages"][0]["content"][0]["text"] = MEMORY.replace("four", "five")


def reminder_inserted(request: Request) -> None:
    request["messages"][2]["content"].insert(0, text("<system-reminder>\nThe plan changed.\n</system-reminder>"))


def model_switched(request: Request) -> None:
    request["model"] = "claude-sonnet-4-6"


def compacted(request: Request) -> None:
    request["messages"] = [{"role": "user", "content": [text("Summary: all is well. " + words("summaries"))]}]


def mark_moved(request: Request) -> None:
    request["tools"][0]["cache_control"] = MARK


EDITED, THERE = "its text changed", "it was not there before"
SWITCHED = "the model changed from anthropic:claude-opus-4-6 to anthropic:claude-sonnet-4-6"
SHORTER = "the conversation was cut short: from here on its messages are fewer, and others"
UNMARKED = "no mark for the cache stands within 20 blocks behind what was kept"
CASES: dict[Callable[[Request], None], tuple[str | None, str, str]] = {
    tools_reordered: ("tool Write", "reordered", "it stands at another place"),
    schema_changed: ("tool Write", "edited", EDITED),
    clock_moved: ("system Clock", "edited", EDITED),
    memory_edited: ("instructions /home/me/CLAUDE.md", "edited", EDITED),
    reminder_inserted: ("reminder The plan changed.", "added", THERE),
    model_switched: (None, "model", SWITCHED),
    compacted: (None, "edited", SHORTER),
    mark_moved: (None, "cache_control", UNMARKED),
}
OPENAI_CASES: dict[Callable[[Request], None], int] = {
    tools_reordered: 10_100,
    schema_changed: 7_200,
    clock_moved: 4_300,
}
"""About how many tokens stand behind the change. What stands before it can be read from the cache."""

PER_TOKEN = {"claude-opus-4-6": Decimal("5.75"), "claude-sonnet-4-6": Decimal("3.45")}
"""What writing a token costs more than reading it, for a million."""


@pytest.mark.parametrize("change", CASES, ids=lambda change: change.__name__)
async def test_a_break_names_the_part_the_reason_and_the_price(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Request], None]
) -> None:
    first = claude()
    second = gone_on(first)
    change(second)
    answers = [
        anthropic_messages.document(WireReply(text=("Nothing.",), input_tokens=0, written_tokens=10_000)),
        anthropic_messages.document(WireReply(text=("Good.",), input_tokens=0, written_tokens=10_100)),
    ]
    async with (
        running(*answers) as server,
        standing_for("api.anthropic.com", tmp_path, server.url, monkeypatch),
        xray(world, {}) as proxy,
    ):
        url, named = f"{proxy.url}/anthropic", {"X-Session-Id": "one"}
        async with anthropic.AsyncAnthropic(base_url=url, api_key="sk-planted", default_headers=named) as client:
            await client.messages.create(**marked(first))
            await client.messages.create(**(second if change is mark_moved else marked(second)))
        (session,) = await proxy.sessions()
        report = await proxy.pane.sessions.xray(session)

    (broke,) = [call.broke for call in report.cache.calls if call.broke is not None]
    assert (broke.item, broke.kind, broke.reason, broke.since) == (*CASES[change], 1)
    # All of it was sent before but what is new; of a conversation that was cut short, tools and system alone.
    again = {share.kind: share.tokens for share in report.calls[1].kinds}
    most = again["tool"] + again["system"] if change is compacted else 10_100
    assert most - 100 < broke.lost_tokens <= most + 1
    assert broke.cost_usd == broke.lost_tokens * PER_TOKEN[second["model"]] / 1_000_000


@pytest.mark.parametrize("change", OPENAI_CASES, ids=lambda change: change.__name__)
async def test_a_break_of_an_openai_client_is_named_as_well(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Request], None]
) -> None:
    first = claude()
    second = gone_on(first)
    change(second)
    answers = [
        openai_chat.document(WireReply(text=("Nothing.",), input_tokens=10_000)),
        openai_chat.document(WireReply(text=("Good.",), input_tokens=10_100)),
    ]
    async with (
        running(*answers) as server,
        standing_for("api.openai.com", tmp_path, server.url, monkeypatch),
        xray(world, {}) as proxy,
    ):
        url, named = f"{proxy.url}/openai/v1", {"X-Session-Id": "one"}
        async with openai.AsyncOpenAI(base_url=url, api_key="sk-planted", default_headers=named) as client:
            for request in (first, second):
                await client.chat.completions.create(**as_openai(request))
        (session,) = await proxy.sessions()
        report = await proxy.pane.sessions.xray(session)

    (broke,) = [call.broke for call in report.cache.calls if call.broke is not None]
    assert (broke.item, broke.kind, broke.reason, broke.since) == (*CASES[change], 1)
    # Of gpt-4o a token costs 2.50 for a million, and 1.25 when it is read.
    assert broke.cost_usd == broke.lost_tokens * Decimal("1.25") / 1_000_000
    assert abs(broke.lost_tokens - OPENAI_CASES[change]) < 100


def as_openai(request: Request) -> Request:
    functions = [
        {"name": one["name"], "description": one["description"], "parameters": one["input_schema"]}
        for one in request["tools"]
    ]
    system = {"role": "system", "content": "\n".join(block["text"] for block in request["system"])}
    spoken = [
        {"role": message["role"], "content": "".join(block["text"] for block in message["content"])}
        for message in request["messages"]
    ]
    return {
        "model": "gpt-4o",
        "tools": [{"type": "function", "function": function} for function in functions],
        "messages": [system, *spoken],
    }


async def test_each_part_of_a_call_has_its_price_read_written_and_plain(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = WireReply(text=("Good.",), input_tokens=100, output_tokens=10, cached_tokens=6_000, written_tokens=3_900)
    async with (
        running(anthropic_messages.answer(told)) as server,
        standing_for("api.anthropic.com", tmp_path, server.url, monkeypatch),
        xray(world, {}) as proxy,
    ):
        async with (
            anthropic.AsyncAnthropic(base_url=f"{proxy.url}/anthropic", api_key="sk-planted") as client,
            client.messages.stream(**marked(claude())) as stream,
        ):
            await stream.get_final_message()
        (session,) = await proxy.sessions()
        report = await proxy.pane.sessions.xray(session)
        (call,) = report.calls
        client_view = await proxy.pane.sessions.call(session, 1)

    million = 1_000_000
    prompt = (6_000 * Decimal("0.5") + 3_900 * Decimal("6.25") + 100 * Decimal(5)) / million
    assert call.call.cost_usd == prompt + 10 * Decimal(25) / million
    assert sum(part.cost_usd or 0 for part in report.parts) == prompt
    assert client_view.parts == report.parts
    rates = {part.name: (part.cost_usd or 0) / part.tokens * million for part in report.parts if part.kind == "tool"}
    assert rates == {"Read": Decimal("0.5"), "Write": Decimal("0.5"), "Search": Decimal("0.5")}
    last = max((part for part in report.parts if part.kind == "message"), key=lambda part: part.start)
    assert last.cost_usd == ((last.tokens - 100) * Decimal("6.25") + 100 * Decimal(5)) / million
    kinds = {share.kind: share.cost_usd for share in call.kinds}
    assert kinds["tool"] == sum(part.cost_usd or 0 for part in report.parts if part.kind == "tool")
