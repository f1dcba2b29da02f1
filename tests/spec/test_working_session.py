"""What a session works on and says of itself: over HTTP, through the model's tool, and in the next process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spec.place import Product, environment, texts
from wire import openai_chat
from wire.reply import WireCall, WireReply

TOO_MANY = "Too many items (11, max 10 per set). Nothing was changed."


@pytest.mark.spec("S2.13")
def test_a_session_has_a_name_an_intent_an_environment_and_the_time_of_its_last_use(pane: Product) -> None:
    session = pane.session(pane.folder("meta"), name="Issue 123")
    begun = pane.get(f"/sessions/{session}")
    pane.patch(session, settings={"current_intent": "mend the build", "environment_hint": "Linux, Python 3.13"})
    pane.ask(session, "Hello")
    used = pane.get(f"/sessions/{session}")
    cleared = pane.patch(session, settings={"current_intent": None, "environment_hint": None})

    named = [
        (one["name"], one["settings"]["current_intent"], one["settings"]["environment_hint"]) for one in (begun, used)
    ]
    assert named == [("Issue 123", None, None), ("Issue 123", "mend the build", "Linux, Python 3.13")]
    assert begun["updated_at"] < used["updated_at"]
    assert [cleared["settings"][name] for name in ("current_intent", "environment_hint")] == [None, None]


@pytest.mark.spec("S2.84")
def test_the_provider_is_told_how_to_keep_the_context_after_the_core_prompt_and_before_the_site(pane: Product) -> None:
    folder = pane.folder("placed")
    folder.agent(working_context=True)
    folder.write("prompts/default_site.md", "Guidelines for any site.")

    pane.ask(pane.session(folder), "Hello")

    told = "\n".join(texts(pane.sent, "system"))
    places = [told.index(words) for words in ("You are Pane.", "You MUST", "Guidelines for any site.")]
    assert places == sorted(places)
    offered = [tool["function"]["name"] for tool in pane.sent["tools"]]
    assert offered == ["windowpane__get_relevant_context", "windowpane__set_relevant_context"]


@pytest.mark.spec("S2.90")
def test_a_set_holds_ten_items_and_all_sets_fifty(pane: Product) -> None:
    session = pane.session(pane.folder("limits"))

    def put(name: str, count: int) -> tuple[int, str]:
        items = [f"{name} {number}" for number in range(count)]
        change = {"setContext": {"setName": name, "items": items}}
        answer = pane.http.patch(f"/api/sessions/{session}", json=change)
        return answer.status_code, answer.json()["reply" if answer.is_success else "detail"]

    eleven = put("a", 11)
    tens = [put(name, 10)[0] for name in "abcde"]
    over = put("f", 1)

    assert eleven == (422, TOO_MANY)
    assert tens == [200] * 5
    assert over == (422, "Context too large (51 items, max 50). Remove some items first.")
    held = pane.get(f"/sessions/{session}")["context"]
    assert {name: len(items) for name, items in held.items()} == dict.fromkeys("abcde", 10)


def test_the_models_own_call_keeps_to_the_same_limits(pane: Product) -> None:
    folder = pane.folder("called")
    folder.agent(working_context=True)
    session = pane.session(folder)
    wishes = ({"set_name": "ports", "items": [str(port) for port in range(11)]}, {"set_name": "ports", "items": ["80"]})
    calls = [
        WireReply(calls=(WireCall(f"c{number}", "windowpane__set_relevant_context", (json.dumps(wish),)),))
        for number, wish in enumerate(wishes)
    ]

    pane.ask(session, "Note the ports", *calls, "Done.")

    # A result that failed says so in the one way that this protocol has for it.
    assert texts(pane.sent, "tool") == [json.dumps({"error": TOO_MANY}, separators=(",", ":")), "Set ports: 1 items"]
    assert pane.get(f"/sessions/{session}")["context"] == {"ports": ["80"]}


@pytest.mark.spec("S2.91")
def test_the_next_process_reminds_the_model_of_files_that_exist_and_names_those_that_are_gone(
    pane: Product, tmp_path: Path
) -> None:
    session = pane.session(pane.folder("resumed"))
    spec = tmp_path / "spec.md"
    spec.write_text("A spec.")
    gone = tmp_path / "gone.md"
    pane.ask(session, "Hello")
    pane.patch(session, context={"files": [str(spec), str(gone)], "applet": ["git-diff", "path=/srv"]})

    pane.wire.forget()
    pane.wire.add(openai_chat.answer(WireReply(text=("Going on.",))))
    command = [sys.executable, "-m", "windowpane", "chat", session, "-m", "Go on"]
    keys = {"OPENAI_BASE_URL": f"{pane.wire.url}/v1", "OPENAI_API_KEY": "sk-test-1234567890"}
    env = environment(pane.data, **keys)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, input="")

    assert (done.returncode, done.stdout) == (0, "Going on.\n"), done.stderr
    reminder = f"Relevant files:\n- {spec}\n\n(1 files not found)\n- {gone}\n\nLast applet: git-diff (path=/srv)"
    told = texts(pane.sent, "user")
    assert sum(reminder in text for text in told) == 1
    assert told[-1] == "Go on"


@pytest.mark.spec("S4.25")
def test_a_session_has_no_prompt_of_its_own_until_it_is_given_one_and_the_agents_stays(pane: Product) -> None:
    folder = pane.folder("override")
    session = pane.session(folder)

    asked: list[tuple[str | None, list[str]]] = []
    for override in (None, "Answer in verse.", None):
        state = pane.patch(session, settings={"system_prompt": override})
        pane.ask(session, "Hello")
        asked.append((state["settings"]["system_prompt"], texts(pane.sent, "system")))

    assert [(override, str(told).count("You are Pane."), str(told).count("in verse")) for override, told in asked] == [
        (None, 1, 0),
        ("Answer in verse.", 1, 1),
        (None, 1, 0),
    ]
