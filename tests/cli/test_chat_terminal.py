"""Conversations in a real terminal, here and over a server, with the built-in model and real tool servers."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.request import urlopen

import pytest

from cli.running import Terminal, terminal, windowpane
from cli.serving import server

Place = Literal["here", "there"]
EVERYWHERE = pytest.mark.parametrize("place", ["here", "there"])

CTRL_C = b"\x03"
CTRL_D = b"\x04"

SLOW_SERVER = """
import time
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("slow", log_level="ERROR")


@server.tool()
def wait() -> str:
    "Take longer than anybody waits."
    Path(__file__).with_name("begun").touch()
    time.sleep(600)
    return "at last"


server.run()
"""


ASKING_SERVER = """
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("shop", log_level="ERROR")


class Size(BaseModel):
    size: str
    sugar: int = 0


def which() -> Elicit[Size]:
    return Elicit("Which size?", Size)


@server.tool()
async def order(wanted: Annotated[ElicitationResult[Size], Resolve(which)], ctx: Context) -> str:
    "Order tea."
    await ctx.report_progress(1, 2, "boiling")
    return f"{wanted.data.size} tea, {wanted.data.sugar} sugar" if wanted.action == "accept" else wanted.action


server.run()
"""


@contextmanager
def chat(place: Place, data: Path, *arguments: str) -> Generator[Terminal]:
    """Chat in a terminal with an agent of a data folder, or over a server whose tool servers have started."""
    if place == "here":
        with terminal(data, "chat", *arguments) as screen:
            yield screen
        return
    with server(data) as url:
        (agent,) = (folder.name for folder in (data / "agents").iterdir())
        with urlopen(f"{url}/api/agents/{agent}/servers?settle_s=20") as settled:
            settled.read()
        with terminal(data / "nothing", "chat", *arguments, "--url", url) as screen:
            yield screen


def session_of(screen: Terminal) -> str:
    """Return the session that the greeting names."""
    screen.expect("session ")
    return screen.expect(",")


@pytest.mark.spec("S0.73", "S0.77", "S0.78", "S0.85", "S1.85", "S1.86", "S1.93")
@EVERYWHERE
def test_a_conversation_shows_its_answers_its_context_and_changes_it(data: Path, place: Place) -> None:
    with chat(place, data) as screen:
        screen.expect("/help")
        screen.expect("you> ")

        screen.send("What is an include mode? @reference:include-modes")
        screen.expect("+ reference:include-modes is now in this session")
        screen.expect("I am the built-in offline model")
        screen.expect("- References: include-modes")
        screen.expect("[2 rules (all always), 1 reference (manual), ")
        screen.expect(" left (window: model)]")
        screen.expect("you> ")

        screen.send("/context")
        shown = screen.expect("Parts:")
        screen.expect("Budget: ")
        assert "selection is off" in screen.expect("you> ")
        rows = [line for line in shown.splitlines() if " • " in line and "  windowpane. • " not in line]
        lines = [line.split(" tokens")[0].rsplit(" ", 1)[0] for line in rows]
        assert lines == [
            "  100 • answer-briefly [Always]",
            "  110 • say-where-it-comes-from [Always]",
            "  210 • include-modes [Manual]",
            "  notes. • list_notes [Always]",
            "  notes. • read_note [Always]",
            "  notes. • search_notes [Always]",
            "  notes. • write_note [Always]",
        ]

        screen.send("/add rule:keep-notes")
        screen.expect("Added rule:keep-notes.")
        screen.send("/add keep-notes")
        screen.expect("rule:keep-notes is already in this session.")
        screen.send("/remove notes:search_notes")
        screen.expect("Removed notes:search_notes.")
        screen.send("/remove notes:search_notes")
        screen.expect("notes:search_notes is not in this session.")
        screen.send("/add rule:keep-note")
        screen.expect("error: the agent has no item 'rule:keep-note'; did you mean rule:keep-notes")
        screen.send("/items")
        screen.expect("In this session (")
        assert "300 • keep-notes [Manual]" in screen.expect("Not in this session")
        screen.expect("search_notes [Always] notes:search_notes")
        (data / "Zoo notes.md").write_text("Every quagga in the zoo is fed with hay at seven.")
        screen.send("/reference")
        screen.expect("error: name a file: /reference FILE")
        for said in ("Made reference:Zoo-notes, 24 tokens.", "This file is a reference of this session already."):
            screen.send(f"/reference {data / 'Zoo notes.md'}")
            screen.expect(said)
        screen.send("/items")
        screen.expect("Made from files (1), this session only:")
        screen.expect("Zoo-notes [Agent] reference:Zoo-notes – Zoo notes.md")
        screen.send("/forget reference:Zoo-notes")
        screen.expect("Removed reference:Zoo-notes.")
        screen.send("/why")
        screen.expect("Searched for: What is an include mode? @reference:include-modes")
        screen.expect("Not included (")
        screen.send("/model nobody:nothing")
        screen.expect("error: no provider 'nobody'")
        screen.send("/model")
        screen.expect("The model is echo.")
        screen.send("/set preset aggressive")
        screen.expect('search is now {"preset": "aggressive"}.')
        screen.send("/set temperature 0.2")
        screen.expect("temperature is now 0.2.")
        screen.send("/set url not a url")
        screen.expect("error: current_url: 'not%20a%20url' is no address")
        screen.send("/set permission always")
        screen.expect("tool_permission is now always.")
        screen.send("/set time_zone Europe/Paris")
        screen.expect("time_zone is now Europe/Paris.")
        screen.send("/set override Answer in French.")
        screen.expect("system_prompt is now Answer in French..")
        screen.send("/set preset default")
        screen.expect("search is now the agent's.")
        screen.send("/set colour red")
        screen.expect("error: colour: unknown setting; available: model, temperature")
        screen.send("/set")
        screen.expect("system_prompt = Answer in French.")
        screen.send("/nonsense")
        screen.expect("error: no command /nonsense; /help lists the commands")
        screen.send("/help")
        screen.expect("/remove rule:NAME | reference:NAME | SERVER:TOOL")
        screen.send("/new")
        screen.expect("This is a new session, ")
        screen.send("/context")
        screen.expect("No context data available")
        screen.send("/quit")
        rest = screen.rest()

    assert "Traceback" not in rest
    assert screen.process.wait() == 0


@EVERYWHERE
def test_a_tool_call_asks_and_each_answer_counts_as_far_as_it_says(data: Path, place: Place) -> None:
    notes = data / "agents" / "guide" / "notes"
    for name in ("once", "session", "unasked"):
        (notes / f"{name}.md").unlink(missing_ok=True)
    with chat(place, data) as screen:
        session = session_of(screen)
        screen.expect("you> ")

        screen.send('/tool notes__write_note {"name": "denied", "text": "x"}')
        screen.expect("notes:write_note wants to run with")
        screen.expect('"name": "denied"')
        screen.expect("[d]eny: ")
        screen.send("what?")
        screen.expect("Type o, s or d.")
        screen.send("d")
        screen.expect("← notes:write_note failed: The user denied this call.")
        screen.expect("you> ")
        screen.send('/tool notes__write_note {"name": "once", "text": "x"}')
        screen.expect("[d]eny: ")
        screen.send("o")
        screen.expect("← notes:write_note answered: Wrote once: 2 characters.")
        screen.expect("Wrote once: 2 characters.")
        screen.send('/tool notes__write_note {"name": "session", "text": "x"}')
        screen.expect("[d]eny: ")
        screen.send("s")
        screen.expect("← notes:write_note answered: Wrote session: 2 characters.")
        screen.send('/tool notes__write_note {"name": "unasked", "text": "x"}')
        assert "[d]eny" not in screen.expect("← notes:write_note answered: Wrote unasked: 2 characters.")
        screen.expect("you> ")
        screen.insist(CTRL_C, f"Continue: windowpane chat {session}")
        screen.rest()

    assert {path.stem for path in notes.iterdir()} >= {"once", "session", "unasked"}
    assert not (notes / "denied.md").exists()


@EVERYWHERE
def test_a_call_that_was_left_waiting_is_asked_about_when_the_session_is_resumed(data: Path, place: Place) -> None:
    with chat(place, data) as screen:
        session = session_of(screen)
        screen.expect("you> ")
        screen.send('/tool notes__write_note {"name": "later", "text": "x"}')
        screen.expect("[d]eny: ")
        screen.press(CTRL_D)
        screen.expect("A tool call still waits for your decision.")
        screen.rest()
    alone = windowpane(data, "chat", session, "--message", "hello")
    with chat(place, data, session[:12]) as screen:
        screen.expect("Turn 1 waits for your decision.")
        screen.expect("[d]eny: ")
        screen.insist(CTRL_C, "(cancelled; the answer so far is kept)")
        screen.expect("you> ")
        screen.press(CTRL_D)
        screen.rest()

    assert (alone.code, alone.out, alone.err) == (
        1,
        "",
        "error: turn 1 waits for a decision about notes:write_note; decide or cancel it first "
        "(`windowpane chat SESSION` asks for your decision)\n",
    )
    assert not (data / "agents" / "guide" / "notes" / "later.md").exists()


@EVERYWHERE
def test_a_running_tool_asks_in_the_terminal_and_goes_on_with_the_answer(tmp_path: Path, place: Place) -> None:
    agent = tmp_path / "agents" / "shop"
    (agent / "prompts").mkdir(parents=True)
    (agent / "prompts" / "core.md").write_text("You sell tea.")
    (agent / "server.py").write_text(ASKING_SERVER)
    (agent / "agent.yaml").write_text(
        f"mcpServers:\n  shop:\n    command: {sys.executable}\n    args: ['${{AGENT_DIR}}/server.py']\n"
        "    permission: not_required\n"
    )
    with chat(place, tmp_path) as screen:
        screen.expect("you> ")
        for _ in range(20):
            screen.send("/items")
            if "shop. • order [Always]" in screen.expect("Not in this session") + screen.expect("you> "):
                break
        screen.send("call shop__order")
        screen.expect("shop asks you")
        screen.expect("Which size?")
        screen.expect("[c]ancel: ")
        screen.send("a")
        screen.expect("Size: ")
        screen.send("large")
        screen.expect("Sugar (default: 0; may be empty): ")
        screen.send("many")
        screen.expect("Type a value of the type integer.")
        screen.send("2")
        screen.expect("… shop:order 1 of 2: boiling")
        screen.expect("← shop:order answered: large tea, 2 sugar")
        screen.expect("you> ")
        screen.send("call shop__order")
        screen.expect("[c]ancel: ")
        screen.send("d")
        screen.expect("← shop:order answered: decline")
        screen.expect("you> ")
        screen.press(CTRL_D)
        assert "Traceback" not in screen.rest()


@EVERYWHERE
def test_ctrl_c_during_an_answer_cancels_the_turn_and_the_conversation_goes_on(tmp_path: Path, place: Place) -> None:
    agent = tmp_path / "agents" / "slow"
    (agent / "prompts").mkdir(parents=True)
    (agent / "prompts" / "core.md").write_text("You wait.")
    (agent / "server.py").write_text(SLOW_SERVER)
    (agent / "agent.yaml").write_text(
        f"mcpServers:\n  slow:\n    command: {sys.executable}\n    args: ['${{AGENT_DIR}}/server.py']\n"
        "    permission: not_required\n"
    )
    with chat(place, tmp_path) as screen:
        screen.expect("you> ")
        # The tool server may take its time on a busy machine.
        for _ in range(20):
            screen.send("/items")
            if "slow. • wait [Always]" in screen.expect("Not in this session") + screen.expect("you> "):
                break
        screen.send("call slow__wait")
        screen.expect("→ slow:wait {}")
        screen.press(CTRL_C)
        screen.expect("(cancelled; the answer so far is kept)")
        screen.expect("you> ")
        screen.send("hello")
        screen.expect("I am the built-in offline model")
        screen.expect("you> ")
        screen.press(CTRL_D)
        assert "Traceback" not in screen.rest()


@EVERYWHERE
def test_empty_lines_and_commands_are_not_sent_and_an_empty_conversation_leaves_no_session(
    data: Path, place: Place
) -> None:
    with chat(place, data) as screen:
        session = session_of(screen)
        screen.expect("you> ")
        screen.send("")
        screen.expect("you> ")
        screen.send("   ")
        screen.expect("you> ")
        screen.send("/help")
        screen.expect("Anything else is sent as a message. Ctrl-C cancels an answer, Ctrl-D exits.")
        screen.expect("you> ")
        screen.send("/context")
        screen.expect("No context data available")
        screen.expect("you> ")
        screen.press(CTRL_D)
        screen.expect("The session was empty and was deleted.")
        screen.rest()

    assert session not in windowpane(data, "sessions", "--json").out


def test_the_first_conversation_writes_an_example_agent(tmp_path: Path) -> None:
    with terminal(tmp_path, "chat") as screen:
        screen.expect(f"an example was written to {tmp_path}/agents/guide")
        session = session_of(screen)
        screen.expect("you> ")
        screen.insist(CTRL_C, "The session was empty and was deleted.")
        screen.rest()

    gone = windowpane(tmp_path, "sessions", "show", session)
    assert (gone.code, gone.err) == (
        1,
        f"error: no session '{session}' (`windowpane sessions` lists the sessions)\n",
    )


def test_an_mcp_server_in_a_terminal_says_what_it_waits_for(tmp_path: Path) -> None:
    with terminal(tmp_path, "mcp") as screen:
        screen.expect("Waiting for an MCP host on stdin.")
        screen.press(CTRL_D)
        screen.rest()
