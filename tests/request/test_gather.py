from __future__ import annotations

from windowpane.agents.base import Agent
from windowpane.context.events import SessionItem
from windowpane.context.ids import SessionId
from windowpane.context.items import Rule, Tool, rule_ref, tool_ref
from windowpane.context.request import Absent
from windowpane.context.session import SessionState
from windowpane.request.gather import HeldItem, Stock, gather, long_numbers
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


def test_what_an_agent_has_is_looked_through_once_for_all_its_sessions() -> None:
    chosen = [Rule(name, "", include="agent") for name in ("b", "a", "held", "removed")]
    rules = (*chosen, Rule("late", "", include="always"))
    agent, read = Agent(name="a", folder="a", rules=rules), Tool("up", "read", include="agent")
    servers = (ServerStatus(name="up", state="ready", tools=(read,)),)
    stock = Stock.of(agent, servers)
    holds = SessionState(
        id=SessionId("s"),
        context_items=(SessionItem(rule_ref("held"), "manual"),),
        removed=frozenset({rule_ref("removed")}),
    )

    new = gather(agent, servers, SessionState(id=SessionId("n")), stock=stock)
    first, second = (gather(agent, servers, holds, stock=stock) for _ in range(2))

    assert first == gather(agent, servers, holds)
    assert [str(item.ref) for item in new.candidates] == ["rule:a", "rule:b", "rule:held", "rule:removed", "up:read"]
    assert [str(item.ref) for item in first.candidates] == ["rule:a", "rule:b", "up:read"]
    assert first.candidates is second.candidates
    late = Absent(type="rule", name="late", code="became_always", reason="became `always` after this session began")
    gone = Absent(type="rule", name="removed", code="removed", reason="never in this session: it was removed by hand")
    assert (new.absent, first.absent) == ((late,), (late, gone))


def test_every_number_that_a_boundary_code_could_be_is_found() -> None:
    texts = ("Call 12345678901 or 123456789012.", "x01234567890123x ١٢٣٤٥٦٧٨٩٠١٢")

    assert long_numbers(texts) == {"123456789012", "012345678901", "234567890123"}
