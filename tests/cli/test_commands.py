"""Every command as it is typed, in a data folder of its own, with the built-in model and the example agent."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from cli.running import PATIENCE_S, Done, environment, process, windowpane
from files.samples import png
from stores.kinds import KEY

MESSAGE = '  call notes__write_note {"name": "kept", "text": "x"}\r\n'


@dataclass(frozen=True, slots=True)
class Told:
    """A session in which one message was sent, and how the command that sent it ended."""

    session: str
    done: Done


@pytest.fixture(scope="module")
def told(data: Path) -> Told:
    done = process(data, "chat", piped=MESSAGE.encode())
    return Told(done.err.rsplit("windowpane context ", 1)[1].split()[0], done)


def test_chat_sends_files_along_and_names_one_that_cannot_be_read(data: Path, tmp_path: Path) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(png(40, 30))
    sent = windowpane(data, "chat", "--attach", str(picture), "-m", "What is this?")
    missing = windowpane(data, "chat", "--attach", str(tmp_path / "dog.png"), "-m", "What is this?")
    (tmp_path / "dog.png").write_bytes(b"\x00\x01")
    refused = windowpane(data, "chat", "--attach", str(tmp_path / "dog.png"), "-m", "What is this?")

    assert sent.code == 0
    assert f"With your message came cat.png (image/png, {len(png(40, 30))} bytes)." in sent.out
    assert (missing.code, "dog.png: No such file" in missing.err) == (1, True)
    assert (refused.code, "'dog.png' is damaged, or of a kind that cannot be attached" in refused.err) == (1, True)


def test_init_writes_an_agent_once_and_says_what_to_try(tmp_path: Path) -> None:
    first = windowpane(tmp_path, "init")
    again = windowpane(tmp_path, "init")

    folder = tmp_path / "agents" / "guide"
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines()[0] == f"Wrote the agent guide to {folder}"
    assert first.out.splitlines()[-3:] == [
        "  windowpane chat",
        '  windowpane preview "How do I add a rule?"',
        "  windowpane serve",
    ]
    assert (folder / "prompts" / "core.md").is_file()
    assert (again.code, again.out) == (1, "")
    assert again.err == (
        f"error: {folder} is not empty, and nothing in it was changed; name a new folder for the agent\n"
    )


def test_init_elsewhere_names_the_folder_in_what_to_try(tmp_path: Path) -> None:
    done = windowpane(tmp_path / "data", "init", str(tmp_path / "my agent"))

    assert done.out.splitlines()[-3] == f"  windowpane chat --agents '{tmp_path}/my agent'"


def test_without_a_terminal_the_answer_is_all_of_stdout_and_calls_that_would_ask_are_denied(told: Told) -> None:
    assert told.done.code == 0
    assert told.done.out == (
        "You asked for notes__write_note, so I call it.\n"
        "notes__write_note answered:\n\n"
        "> The user denied this call. Do not try it again unless the user asks for it.\n"
    )
    assert (
        'denied notes:write_note {"name": "kept", "text": "x"}: it needs approval; use --yes to allow such calls'
        in told.done.err.splitlines()
    )


def test_a_file_that_the_agent_goes_without_is_named_beside_the_answer(data: Path) -> None:
    broken = data / "agents" / "guide" / "rules" / "broken.md"
    broken.write_text("---\npriority: high\n---\nBe quick.")
    try:
        done = windowpane(data, "--data", str(data), "chat", "--message", "Hello")
    finally:
        broken.unlink()

    assert done.code == 0
    assert done.err.splitlines()[0].startswith(f"not used: {broken}:2: priority")


def test_yes_allows_tool_calls_and_the_session_goes_on(data: Path, told: Told) -> None:
    done = windowpane(data, "--data", str(data), "chat", told.session[:10], "--yes", "--message", MESSAGE)

    assert done.out.endswith("> Wrote kept: 2 characters.\n")
    assert (data / "agents" / "guide" / "notes" / "kept.md").read_text() == "x\n"


@pytest.mark.spec("S0.72", "S0.76", "S0.77", "S0.85", "S1.93")
def test_context_shows_a_past_turn_and_what_has_changed_since(data: Path, told: Told) -> None:
    rule = data / "agents" / "guide" / "rules" / "answer-briefly.md"
    before = rule.read_text()
    rule.write_text(before + "\nAlways.\n")
    try:
        done = windowpane(data, "context", told.session, "1")
    finally:
        rule.write_text(before)

    lines = done.out.splitlines()
    assert [lines[0], *lines[2:4]] == ["Context Used:", "", "Rules (2):"]
    assert lines[1].startswith("2 rules (all always), ")
    assert lines[1].endswith(" tools (all always)")
    assert lines[4].startswith("  100 • answer-briefly [Always] ")
    assert lines[4].endswith(" tokens – changed since")
    assert lines[5].startswith("  110 • say-where-it-comes-from [Always] ")
    assert any(line.startswith("  notes. • write_note [Always] ") for line in lines)
    assert any(line.startswith("Budget: ") for line in lines)
    assert any(line.startswith("  rule:keep-notes") and "selection is off" in line for line in lines)


def test_context_shows_every_call_of_a_turn(data: Path, told: Told) -> None:
    whole = windowpane(data, "context", told.session, "1").out.splitlines()
    second = windowpane(data, "context", told.session, "1", "--call", "2").out
    unseen = windowpane(data, "context", told.session, "1", "--call", "2", "--wire").out

    assert "Calls (2):" in whole
    assert [line.split(",")[0] for line in whole[whole.index("Calls (2):") + 1 :][:2]] == ["  1 answer", "  2 answer"]
    assert "─+─ tool (history, answers call_" in second
    assert "The user denied this call." in second
    assert unseen.endswith("Its model runs in this process: nothing was sent.\n")


def test_calls_of_the_built_in_model_are_free_with_our_own_count(data: Path, told: Told) -> None:
    whole = windowpane(data, "context", told.session, "1").out
    calls = windowpane(data, "calls", told.session).out
    stats = windowpane(data, "stats", told.session).out

    count = r"[\d,]+ tokens in by our own count"
    line = rf"  2 answer, step 2: complete, {count}, [\d,]+ ms, in this process; nothing was sent\n"
    assert re.search(rf"{line}  together: {count}, free\n", whole)
    assert "turn 1: 1 answer, step 1: complete, " in calls
    assert "  together: free\n" in calls
    assert re.search(r"^usage +none: every call was in this process$", stats, re.MULTILINE)
    assert re.search(r"^calls +\d+$", stats, re.MULTILINE)
    assert re.search(r"^cost +free$", stats, re.MULTILINE)
    assert "unknown" not in whole + calls + stats


def test_context_as_json_holds_the_messages_to_the_byte(data: Path, told: Told) -> None:
    done = windowpane(data, "context", told.session, "1", "--json", "--messages")

    request = json.loads(done.out)
    last = request["messages"][-1]
    assert (last["role"], last["part"], last["content"]) == ("user", "message", MESSAGE)
    assert [item["name"] for item in request["context"]["items"] if item["type"] == "rule"] == [
        "answer-briefly",
        "say-where-it-comes-from",
    ]


def test_context_of_a_turn_that_is_not_there_says_so(data: Path, told: Told) -> None:
    done = windowpane(data, "context", told.session, "99")

    assert done == Done(
        1,
        "",
        f"error: session '{told.session}' has no turn 99 (`windowpane sessions show SESSION` shows its turns)\n",
    )


def test_sessions_are_listed_renamed_shown_and_deleted(data: Path) -> None:
    session = windowpane(data, "chat", "-m", "hello").err.rsplit("windowpane context ", 1)[1].split()[0]

    renamed = windowpane(data, "sessions", "rename", session, "Trial")
    listed = windowpane(data, "sessions", "--json", "--limit", "1")
    shown = windowpane(data, "sessions", "show", "last")
    found = json.loads(windowpane(data, "sessions", "find", "trial", "--json").out)
    missing = windowpane(data, "sessions", "find", "over:1000k", "trial")
    asked = process(data, "sessions", "delete", session, piped=b"n\n")
    deleted = windowpane(data, "sessions", "delete", session, "--yes")

    assert renamed.out == f"{session} is now called 'Trial'\n"
    (row,) = json.loads(listed.out)
    assert {key: row[key] for key in ("id", "name", "agent", "turns", "messages")} == {
        "id": session,
        "name": "Trial",
        "agent": "guide",
        "turns": 1,
        "messages": 2,
    }
    assert [(one["session_id"], one["title"], one["turn"]) for one in found["found"]] == [(session, "Trial", None)]
    assert missing.out == "Nothing was found.\n"
    assert shown.out.startswith(f"Trial  {session}\nagent guide, 1 turn, ")
    assert "\nuser (turn 1)\nhello\n\nassistant (turn 1)\nI am the built-in offline model" in shown.out
    assert (asked.code, asked.out) == (
        1,
        f"Delete Trial {session} with 2 messages permanently? [y/N]: Nothing was deleted.\n",
    )
    assert deleted.out == f"Deleted Trial {session} with 2 messages\n"


def test_preview_shows_the_request_and_leaves_no_session(tmp_path: Path, data: Path) -> None:
    previewed = windowpane(tmp_path, "preview", "hello @rule:keep-notes", "--json", "--agents", f"{data}/agents/guide")
    listed = windowpane(tmp_path, "sessions")

    context = json.loads(previewed.out)["context"]
    modes = {item["name"]: item["include_mode"] for item in context["items"] if item["server"] != "windowpane"}
    assert modes == {
        "answer-briefly": "always",
        "say-where-it-comes-from": "always",
        "keep-notes": "manual",
        "list_notes": "always",
        "read_note": "always",
        "search_notes": "always",
        "write_note": "always",
    }
    assert listed == Done(0, "No sessions yet. `windowpane chat` starts one.\n", "")


def test_doctor_finds_the_example_agent_healthy(data: Path) -> None:
    done = windowpane(data, "doctor", "--ask")

    assert done.code == 0
    assert done.out.splitlines()[:4] == [
        f"ok  store: sqlite:///{data}/windowpane.db can be opened and written",
        "ok  selection: all-MiniLM-L6-v2/1 works, 384 dimensions",
        f"ok  agents: 1 agent in {data}/agents: guide",
        "ok  agent guide: 5 rules, 7 references, 1 tool server, a core prompt",
    ]
    assert done.out.splitlines()[4].startswith("ok  model echo: answered in ")
    assert done.out.splitlines()[5:] == [
        "ok  tool server notes: connected, 4 tools: list_notes, read_note, write_note, search_notes",
        "No problems found.",
    ]


def test_doctor_names_variables_that_set_nothing(data: Path) -> None:
    done = windowpane(data, "doctor", WINDOWPANE_STORE="memory:", WINDOWPANE_TOKEN="t", WINDOWPANE_QQ="")

    assert done.out.splitlines()[:4] == [
        "??  environment: WINDOWPANE_QQ is not a setting and has no effect",
        "      → docs/reference/settings.md lists the settings",
        "??  environment: WINDOWPANE_STORE is not a setting and has no effect",
        "      → did you mean WINDOWPANE_STORE_URL?",
    ]
    assert (done.code, done.out.splitlines()[-1]) == (0, "No problems found, 2 warnings.")


def test_doctor_counts_what_is_doubtful_beside_what_is_broken(data: Path) -> None:
    windowpane(data, "init", str(data / "agents" / "guide"))
    (data / "agents" / "no-agent").mkdir()

    done = windowpane(data, "doctor")

    assert (done.code, done.out.splitlines()[-1]) == (0, "No problems found, 1 warning.")


def test_with_a_key_doctor_says_so_and_without_it_what_is_missing_and_a_search_looks_at_names(
    data: Path, tmp_path: Path
) -> None:
    def run(*arguments: str, key: str = KEY) -> Done:
        given = {"WINDOWPANE_ENCRYPTION_KEY": key} if key else {}
        store = f"sqlite:///{tmp_path}/own.db"
        return windowpane(data, *arguments, piped=b"", WINDOWPANE_STORE_URL=store, **given)

    assert run("chat", "--message", "What is a rule?").code == 0
    with_key, without = run("doctor"), run("doctor", key="")
    wrong = run("sessions", key="A" * 43 + "=")
    named, said = run("sessions", "--search", "a rule?"), run("sessions", "--search", "echo")

    assert with_key.out.splitlines()[0].endswith("own.db can be opened and written; encrypted")
    assert "no key is set; nothing was changed. Set WINDOWPANE_ENCRYPTION_KEY" in " ".join(without.out.split())
    assert (without.code, wrong.code) == (1, 1)
    assert "are encrypted with the key with the id" in " ".join(wrong.err.split())
    assert "What is a rule?" in named.out
    assert "What is a rule?" not in said.out
    assert "Conversations are encrypted: only names were searched." in " ".join(said.out.split())


def test_doctor_names_every_fault_and_what_to_do(tmp_path: Path) -> None:
    broken, odd = tmp_path / "agents" / "broken", tmp_path / "agents" / "odd"
    (broken / "rules").mkdir(parents=True)
    odd.mkdir()
    (broken / "agent.yaml").write_text("model: openai:gpt-5\nmcpServers:\n  absent:\n    command: no-such-command\n")
    (broken / "rules" / "bad.md").write_text("---\npriority: 100\ninclude: sometimes\n---\nText\n")
    (tmp_path / "windowpane.db").write_bytes(b"not a database at all" * 100)

    done = windowpane(tmp_path, "doctor", "--json")

    findings = {(found["subject"], found["health"]): found for found in json.loads(done.out)}
    assert done.code == 1
    assert "Traceback" not in done.err
    assert "is damaged" in findings["store", "broken"]["detail"]
    assert findings["agents", "doubtful"]["detail"] == f"{odd} has no agent.yaml, so it is not an agent"
    details = [found["detail"] for found in json.loads(done.out) if found["subject"] == "agent broken"]
    assert details[0].startswith(f"agent 'broken' has no core prompt: write {broken}/prompts/core.md and state who")
    assert details[1].startswith(f"{broken}/rules/bad.md:3: ")
    assert findings["model openai:gpt-5", "broken"]["detail"].startswith("openai:gpt-5 needs a key: set OPENAI_API_KEY")
    assert "no-such-command" in findings["tool server absent", "broken"]["detail"]
    assert all(found["advice"] for found in json.loads(done.out) if found["health"] != "good")


def test_doctor_calls_no_model_good_that_an_unreadable_agent_does_not_name(data: Path) -> None:
    manifest = data / "agents" / "guide" / "agent.yaml"
    manifest.write_text("model: [openai\n")

    done = windowpane(data, "doctor", "--json")

    found = json.loads(done.out)
    assert done.code == 1
    assert [each["subject"] for each in found if each["subject"].startswith("model")] == []
    assert [each["health"] for each in found if each["subject"] == "agent guide"] == ["broken"]


def test_doctor_without_agents_says_how_to_begin(tmp_path: Path) -> None:
    done = windowpane(tmp_path, "doctor")

    assert done.code == 1
    assert done.out.splitlines()[2:] == [
        f"no  agents: no agent in {tmp_path}/agents",
        "      → `windowpane init` writes an example agent there",
        "1 problem found.",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("chat", "--agent", "nobody", "-m", "hi"), 1, "error: no agent 'nobody'; available: guide\n"),
        (
            ("chat", "--model", "echo:", "-m", "hi"),
            1,
            "error: 'echo:' is not the name of a model; write provider:model",
        ),
        (("sessions", "--store-url", "pigeon://x"), 1, "error: store_url: 'pigeon://x' names no store"),
        (("sessions", "show", "last"), 1, "error: no session 'last'"),
        (("preview", "x", "--session", "a", "--agent", "b"), 2, "use --session or --agent, not both"),
        (("sessions", "show"), 2, "Missing argument 'SESSION'"),
        (("eval", "guide", "--labels", "nowhere"), 1, "error: nowhere cannot be read: No such file or directory\n"),
        (
            ("sessions", "--url", "localhost"),
            1,
            "error: url: 'localhost' is not the address of a server; write http://",
        ),
        (("mcp", "--port", "9000"), 2, "--host and --port are for --http"),
        (("serve", "--port", "70000"), 2, "Invalid value for '--port'"),
        (("serve", "--host", "0.0.0.0"), 1, "error: host: others can reach '0.0.0.0'"),
    ],
)
def test_a_mistake_is_answered_on_stderr_with_the_next_step(
    tmp_path: Path, data: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = windowpane(tmp_path, *arguments, WINDOWPANE_AGENTS=str(data / "agents"))

    assert done.code == code
    assert words in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["export", "share"])
def test_a_file_that_cannot_be_written_is_named(data: Path, command: str) -> None:
    windowpane(data, "chat", "-m", "hi")

    done = windowpane(data, command, "last", "-o", "nowhere/file")

    assert done == Done(1, "", "error: nowhere/file: No such file or directory\n")


def test_piped_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    done = process(tmp_path, "chat", piped=b"caf\xe9")

    assert done == Done(1, "", "error: the piped input is not UTF-8 text (byte 3)\n")


def test_serve_writes_the_example_agent_and_shares_its_sessions_with_the_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windowpane", "serve", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(tmp_path), text=True
    ) as server:
        assert server.stdout is not None
        try:
            said = [server.stdout.readline() for _ in range(3)]
            url = said[2].split()[3]
            with urlopen(Request(f"{url}/api/sessions", b"{}", {"content-type": "application/json"})) as made:
                session = json.load(made)["id"]
            done = windowpane(tmp_path, "chat", session, "-m", "hello")
            with urlopen(f"{url}/api/sessions/{session}") as read:
                count = json.load(read)["message_count"]
            server.send_signal(signal.SIGINT)
            code = server.wait(PATIENCE_S)
        finally:
            server.kill()

    assert said[0] == f"No agent found, so an example was written to {tmp_path}/agents/guide\n"
    assert done.out.startswith("I am the built-in offline model")
    assert (count, code) == (2, 0)
