"""What every reader of a running server must agree on: what was sent, what it used, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from itertools import pairwise, takewhile
from typing import Any

import httpx2

from windowpane.context.messages import Usage
from wire.server import WireServer

PRICES = "{input: 2, output: 10, cache_read: 0.5, cache_write: 3, cache_write_1h: 4}"


def price(usage: Usage) -> Decimal:
    """Return what a usage costs at `PRICES`."""
    plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    cached = Decimal("0.5") * usage.cache_read_tokens + 3 * usage.cache_write_tokens + usage.cache_write_1h_tokens
    return (2 * plain + cached + 10 * usage.output_tokens) / Decimal(1_000_000)


async def assert_laws(
    http: httpx2.AsyncClient, server: WireServer, sessions: Sequence[str], served: Usage, without_usage: int = 0
) -> None:
    """Make sure that these sessions hold every request of a server once, to the byte, and its usage to the cent.

    `served` is what the server reported, all answers together; for so many requests it reported nothing.
    """
    kept: list[str] = []
    used, spent = Usage(), Decimal(0)
    for session in sessions:
        listed = await _get(http, f"/sessions/{session}/calls")
        for call in listed["calls"]:
            record = await _get(http, f"/sessions/{session}/calls/{call['number']}")
            kept.append(record["body"])
            _assert_owners(record)
            _assert_parts(record)
        used += Usage(**listed["usage"])
        spent += _dollars(listed)
        await _assert_views(http, session, listed)
    assert sorted(kept) == sorted(asked.raw.decode() for asked in server.asked)
    assert (used, spent) == (served, price(served))
    while (board := await _get(http, "/analytics"))["behind"]:
        # On a busy machine counting takes more than one look.
        pass
    told = board["spent"]
    counts = {name: told[name] for name in asdict(served) if name in told}
    assert (told["calls"], told["calls_without_usage"], told["calls_without_price"]) == (len(kept), without_usage, 0)
    assert counts == {name: count for name, count in asdict(served).items() if name in told}
    assert _dollars(told) == price(served)


async def _assert_views(http: httpx2.AsyncClient, session: str, listed: dict[str, Any]) -> None:
    """Make sure that what is told of the session, of each turn and of a copy is what its calls say."""
    whole = await _get(http, f"/sessions/{session}/statistics")
    assert (whole["usage"], whole["cost_usd"]) == (listed["usage"], listed["cost_usd"])
    receipts = {receipt["turn"]: receipt for receipt in (await _get(http, f"/sessions/{session}/turns"))["turns"]}
    assert set(receipts) == {call["turn"] for call in listed["calls"] if call["turn"]}
    for turn, receipt in receipts.items():
        own = [call for call in listed["calls"] if call["turn"] == turn]
        usage = await _get(http, f"/sessions/{session}/turns/{turn}/usage")
        used = sum((Usage(**call["usage"]) for call in own if call["usage"]), Usage())
        assert (usage["usage"], receipt["usage"]) == (asdict(used), asdict(used))
        assert _dollars(receipt) == _dollars(usage) == sum(map(_dollars, own))
        assert (await _get(http, f"/sessions/{session}/turns/{turn}/replay"))["identical"]
    await _assert_comparisons(http, session, listed, receipts)
    await _assert_shared(http, session, listed)
    document = (await http.get(f"/api/sessions/{session}/export")).content
    made = await http.post("/api/sessions/import", content=document, headers={"content-type": "application/json"})
    copy = made.json()["id"]
    assert await _get(http, f"/sessions/{copy}/calls") == listed
    await http.delete(f"/api/sessions/{copy}")


async def _assert_comparisons(
    http: httpx2.AsyncClient, session: str, listed: dict[str, Any], receipts: dict[int, Any]
) -> None:
    """Make sure that a comparison of turns has their sums, and one of calls what their bodies have in common."""
    turns = sorted(receipts)
    for before, after in pairwise(turns):
        compared = await _get(http, f"/sessions/{session}/turns/{before}/compare?with={after}")
        for side, turn in ((compared["before"], before), (compared["after"], after)):
            names = ("calls", "usage", "cost_usd")
            assert [side[name] for name in names] == [receipts[turn][name] for name in names]
            unknown = [side[f"calls_{name}"] for name in ("without_usage", "without_price")]
            assert unknown == [receipts[turn][name] for name in ("without_usage", "without_price")]
    for before, after in pairwise(listed["calls"]):
        compared = await _get(http, f"/sessions/{session}/calls/{before['number']}/compare?with={after['number']}")
        assert (compared["before"], compared["after"]) == (before, after)
        assert compared["after_tokens"] - compared["before_tokens"] == sum(compared["tokens_by_kind"].values())
        bodies = [
            (await _get(http, f"/sessions/{session}/calls/{n}"))["body"].encode()
            for n in (before["number"], after["number"])
        ]
        assert compared["same_bytes"] == len(
            list(takewhile(lambda pair: pair[0] == pair[1], zip(*bodies, strict=False)))
        )


async def _assert_shared(http: httpx2.AsyncClient, session: str, listed: dict[str, Any]) -> None:
    """Make sure that a share file tells of each call what the session does, to the byte."""
    shared = await _get(http, f"/sessions/{session}/share")
    assert [each["record"]["call"] for each in shared["calls"]] == listed["calls"]
    assert shared["report"]["together"]["usage"] == listed["usage"]
    assert shared["report"]["together"]["cost_usd"] == listed["cost_usd"]
    body = ""
    for call, each in zip(listed["calls"], shared["calls"], strict=True):
        record = await _get(http, f"/sessions/{session}/calls/{call['number']}")
        body = body[: each["same"]] + each["text"]
        assert body == record["body"]
        assert each["record"] == {**record, "body": None}


def _assert_owners(record: dict[str, Any]) -> None:
    spans, body = record["spans"], record["body"]
    assert [span["start"] for span in spans] == [0, *(span["end"] for span in spans[:-1])]
    assert spans[-1]["end"] == len(body)
    envelope = "".join(body[span["start"] : span["end"]] for span in spans if span["kind"] == "mapping")
    for name in ("input", "messages", "tools", "contents", "functionDeclarations"):
        envelope = envelope.replace(f'"{name}":', "")
    assert envelope.strip("{}[], ") == ""


def _assert_parts(record: dict[str, Any]) -> None:
    if record["call"]["usage"] is None:
        return
    usage = Usage(**record["call"]["usage"])
    assert sum(part["tokens"] for part in record["parts"]) == usage.input_tokens
    output = price(Usage(0, usage.output_tokens))
    assert round(sum(map(_dollars, record["parts"])) + output, 12) == _dollars(record["call"]) == price(usage)


def _dollars(told: dict[str, Any]) -> Decimal:
    return Decimal(told["cost_usd"] or 0)


async def _get(http: httpx2.AsyncClient, path: str) -> Any:
    answer = await http.get(f"/api{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()
