"""A model that asks for what it was not given: real search, a real tool server, a provider on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spec.place import Folder, Product
from wire.reply import WireCall, WireReply

CLOCK = {"name": "get_current_time", "description": "Get the current time in a city"}
ALARM = {"name": "set_alarm", "description": "Ring at the current time in a city"}
MAIL = {"name": "send_mail", "description": "Send an email to a person"}


def office(pane: Product, name: str) -> Folder:
    folder = pane.folder(name)
    clock = folder.tools("clock", [CLOCK, MAIL], include="agent")
    bell = folder.tools("bell", [ALARM], include="manual")
    folder.agent(mcpServers={"clock": clock, "bell": bell})
    folder.reference("holidays", "Closed on the first of May.", include="agent", description="Public holidays")
    pane.get(f"/agents/{name}/servers", settle_s=20)
    return folder


def calling(id_: str, tool: str, **arguments: Any) -> WireReply:
    return WireReply(calls=(WireCall(id_, tool, (json.dumps(arguments),)),))


def offered(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", [])]


@pytest.mark.spec("S0.3", "S0.5", "S0.6", "S0.23", "S0.26", "S2.33")
def test_the_next_call_of_the_turn_offers_what_was_found_and_it_runs_with_its_approval(pane: Product) -> None:
    session = pane.session(office(pane, "asking"))
    before = len(pane.wire.asked)

    waiting = pane.ask(
        session,
        "Thanks!",
        calling("find", "windowpane__find_tools", query="current time in a city"),
        calling("time", "clock__get_current_time", text="Tokyo"),
        "It is noon.",
    )
    bodies = [asked.body for asked in pane.wire.asked[before:]]
    done = pane.ok(pane.http.post(f"/api/sessions/{session}/approvals", json={"decisions": {"time": "allow_once"}}))
    record = pane.get(f"/sessions/{session}/turns/1")["request_context"]
    why = pane.get(f"/sessions/{session}/turns/1/explain/tool/get_current_time", server="clock")

    assert "clock__get_current_time" not in offered(bodies[0])
    assert "clock__get_current_time" in offered(bodies[1])
    assert "bell__set_alarm" not in offered(bodies[1])
    assert [call["id"] for call in waiting["approvals"]] == ["time"]
    assert (done["outcome"], done["text"]) == ("completed", "It is noon.")
    found = next(item for item in record["items"] if item["name"] == "get_current_time")
    reason = "asked for by the model in step 1: find_tools('current time in a city')"
    assert (found["include_mode"], found["status"], found["reason"]) == ("agent", "used", reason)
    assert (why["included"], why["reason"]) == (True, reason)


@pytest.mark.spec("S0.13", "S0.14", "S0.24")
def test_what_is_never_to_be_used_is_not_found_and_what_became_always_comes_in_by_an_act(pane: Product) -> None:
    folder = office(pane, "never")
    session = pane.session(folder)
    items = f"/api/sessions/{session}"
    clock = {"type": "tool", "name": "get_current_time", "server": "clock"}
    pane.ok(pane.http.post(f"{items}/excluded", json=clock))
    pane.ask(session, "Thanks!", calling("find", "windowpane__find_tools", query="current time in a city"), "Sorry.")
    offers = offered(pane.sent)
    server = f"/api/agents/{folder.name}/servers/clock"
    change = {"tools": {"get_current_time": {"include": "always"}}}

    pane.ok(pane.http.patch(server, json=change, headers={"If-Match": "*"}, params={"also_in": session}))
    held = pane.get(f"/sessions/{session}/items")["items"]
    log = pane.get(f"/sessions/{session}/export")["events"]

    assert "clock__get_current_time" not in offers
    assert held == [{"ref": clock, "mode": "manual"}]
    added = next(entry["event"] for entry in log if entry["event"]["type"] == "item.added")
    assert (added["item"], added["actor"]) == ({"ref": clock, "mode": "manual"}, "user")
