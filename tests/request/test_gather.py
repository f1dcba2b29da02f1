from __future__ import annotations

from windowpane.agents.base import Agent
from windowpane.context.events import SessionItem
from windowpane.context.ids import SessionId
from windowpane.context.items import Rule, Tool, rule_ref, tool_ref
from windowpane.context.session import SessionState
from windowpane.request.gather import HeldItem, gather
from windowpane.tools.base import ServerStatus


def test_every_item_of_the_session_has_a_standing_and_a_reason() -> None:
    on, off = Rule("on", "", include="always"), Rule("off", "", enabled=False)
    read, wipe = Tool("up", "read"), Tool("up", "wipe", permission="forbidden")
    ring = Tool("down", "ring")
    refs = (on.ref, off.ref, rule_ref("gone"), read.ref, wipe.ref, ring.ref, tool_ref("none", "x"))
    session = SessionState(id=SessionId("s"), context_items=tuple(SessionItem(ref, "manual") for ref in refs))
    servers = (
        ServerStatus(name="down", state="failed", error="exited with 1", tools=(ring,)),
        ServerStatus(name="up", state="ready", tools=(read, wipe)),
    )

    gathered = gather(Agent(name="a", folder="a", rules=(on, off)), servers, session)

    assert gathered.session == (
        HeldItem(on.ref, "manual", on, "used", "added to this session by hand"),
        HeldItem(off.ref, "manual", off, "disabled", "disabled by the agent"),
        HeldItem(rule_ref("gone"), "manual", None, "missing", "no longer in the agent"),
        HeldItem(read.ref, "manual", read, "used", "added to this session by hand"),
        HeldItem(wipe.ref, "manual", wipe, "not_permitted", "forbidden by the agent"),
        HeldItem(ring.ref, "manual", ring, "server_down", "the server is failed: exited with 1"),
        HeldItem(tool_ref("none", "x"), "manual", None, "missing", "no longer in the agent"),
    )
    assert gathered.degraded == ("tool server down is not available: exited with 1",)
