"""A server that is killed in the middle of an answer does not take the words along that its users have seen."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from server.outages import half, servers
from stores.kinds import KINDS, Kind
from windowpane.context.ids import SessionId
from windowpane.wiring import open_store


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name in {"sqlite", "postgres", "redis"}], ids=lambda kind: kind.name
)
async def test_the_words_that_were_streamed_before_a_kill_are_in_the_interrupted_turn(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDOWPANE_LEASE_S", "2")
    place = kind.fresh(tmp_path)
    store_url = place if "://" in place else f"sqlite:///{place}"
    async with servers(tmp_path, store_url) as both, open_store(store_url) as store:
        both.wire.add(half("until_gone"))
        session = await both.session()
        async with both.begun(0, session, "Hi"):
            while await store.partial(SessionId(session)) is None:  # noqa: ASYNC110 - a store tells no one of it
                await anyio.sleep(0.05)
            both.processes[0].kill()
        path = f"/api/sessions/{session}"
        while (turn := (await both.clients[1].get(f"{path}/turns/1")).json())["outcome"] == "running":
            pass
        messages = (await both.clients[1].get(f"{path}/messages")).json()["messages"]

    assert (turn["outcome"], turn["text"]) == ("interrupted", "So far.")
    assert [message["role"] for message in messages] == ["user", "assistant", "error"]
    assert (messages[1]["model_reply"]["steps"][0]["text"], messages[1]["outcome"]) == ("So far.", "interrupted")
