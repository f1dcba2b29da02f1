"""Selection as users have it: the real model and the hybrid selector, asked over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from spec.place import DEADLINE_S, Folder, Product, selected, texts

REFUND = "When do I get my refund for the invoice?"
RESIZE = "How do I resize a photo before printing?"
FORECAST = "What is the weather forecast for the city of Oslo?"
WEATHER = {"name": "get_forecast", "description": "Get the weather forecast for a city"}
PHOTO_WORK = {
    "printing": "Print a photo on matte paper.",
    "cropping": "Crop a photo to the subject.",
    "resizing": "Make a photo smaller before it is printed.",
    "framing": "Frame a printed photo behind glass.",
    "scanning": "Scan an old photo at 600 dpi.",
    "albums": "Put printed photos into an album.",
    "cameras": "Clean the camera lens.",
    "lights": "Light a portrait softly.",
    "billing": "Invoices are sent monthly.",
    "travel": "Book a train early.",
    "mounting": "Mount a printed picture on board.",
    "ink": "Refill the ink of the printer.",
}


def library(pane: Product, name: str) -> Folder:
    """Return an agent with two references and a rule that are about very different things."""
    folder = pane.folder(name)
    folder.reference(
        "billing",
        "Invoices are sent on the first day of each month. A refund takes five days.",
        include="agent",
        description="Invoices, payments and refunds",
    )
    folder.reference(
        "photos",
        "Photos are printed at 300 dpi on matte paper. Resize a photo to 3000 pixels before you upload it.",
        include="agent",
        description="Printing and resizing photos",
    )
    folder.rule(
        "legal",
        "Never give legal advice; name a lawyer instead.",
        include="agent",
        description="Questions about law, contracts and courts",
    )
    return folder


def studio(pane: Product, name: str) -> Folder:
    """Return an agent with references that are more and less about the same thing."""
    folder = pane.folder(name)
    for work, text in PHOTO_WORK.items():
        folder.reference(work, text, include="agent", description=text)
    return folder


def found(pane: Product, folder: Folder, query: str, **options: Any) -> list[dict[str, Any]]:
    answer = pane.ok(pane.http.post(f"/api/agents/{folder.name}/search", json={"query": query, **options}))
    return answer["items"]


@pytest.mark.spec("S0.17")
def test_what_one_request_selected_is_in_the_next_only_if_it_is_selected_again(pane: Product) -> None:
    session = pane.session(library(pane, "again"))

    turns: list[tuple[list[str], bool]] = []
    for message in (REFUND, RESIZE, REFUND):
        context = pane.ask(session, message)["request_context"]
        turns.append((selected(context), any("A refund takes five days." in text for text in texts(pane.sent, "user"))))

    assert [items for items, _ in turns] == [["reference:billing"], ["reference:photos"], ["reference:billing"]]
    assert (turns[0][1], turns[2][1]) == (True, True)
    assert pane.get(f"/sessions/{session}")["items"] == []


@pytest.mark.spec("S1.56")
def test_after_an_edit_a_reference_is_found_by_its_new_text_and_not_by_its_old_one(pane: Product) -> None:
    folder = library(pane, "edited")
    folder.reference("leaflet", "Clean the lens of a camera with a soft brush.", include="agent")
    session = pane.session(folder)
    messages = ("How do I clean the lens of my camera?", "When do I plant tomatoes in the garden?")
    before = [selected(pane.preview(session, message)["context"]) for message in messages]

    path = f"/api/agents/{folder.name}/files/references/leaflet.md"
    revision = pane.http.get(path).headers["etag"]
    raw = "---\ninclude: agent\n---\nPlant tomatoes in the garden after the last frost, in May."
    pane.ok(pane.http.put(path, json={"raw": raw}, headers={"If-Match": revision}))
    old, new = (pane.preview(session, message)["context"] for message in messages)

    assert before == [["reference:leaflet"], []]
    assert selected(old) == []
    chosen = [item for item in new["items"] if item["include_mode"] == "agent"]
    assert [(item["name"], item["evidence"]["passage"]["text"]) for item in chosen] == [
        ("leaflet", "Plant tomatoes in the garden after the last frost, in May.")
    ]


@pytest.mark.spec("S1.57")
def test_a_tool_is_found_by_the_description_that_its_server_gives_now(pane: Product) -> None:
    folder = pane.folder("redescribed")
    folder.agent(mcpServers={"desk": folder.tools("desk", [{**WEATHER, "name": "ask"}], include="agent")})
    session = pane.session(folder)
    train = "At what time does the next train to Bergen leave the station?"
    before = [selected(pane.preview(session, message)["context"]) for message in (FORECAST, train)]

    described = {"name": "ask", "description": "Tell at what time the next train leaves a station"}
    folder.agent(mcpServers={"desk": folder.tools("desk", [described], include="agent", env={"AGAIN": "1"})})
    after = [selected(pane.preview(session, message)["context"]) for message in (FORECAST, train)]

    assert before == [["desk:ask"], []]
    assert after == [[], ["desk:ask"]]


@pytest.mark.spec("S1.101")
def test_for_the_same_messages_aggressive_selects_more_than_normal_and_conservative_less(pane: Product) -> None:
    session = pane.session(studio(pane, "presets"))

    taken: dict[str, set[tuple[str, str]]] = {}
    for preset in ("aggressive", "normal", "conservative"):
        pane.patch(session, settings={"search": {"preset": preset}})
        taken[preset] = {
            (message, item)
            for message in ("printed photos", "Tell me about photos")
            for item in selected(pane.preview(session, message)["context"])
        }

    assert taken["aggressive"] > taken["normal"] > taken["conservative"] > set()


@pytest.mark.spec("S1.112")
def test_rules_and_references_follow_one_group_of_settings_and_tools_another(pane: Product) -> None:
    folder = library(pane, "domains")
    folder.agent(mcpServers={"weather": folder.tools("weather", [WEATHER], include="agent")})
    session = pane.session(folder)
    message = "How do I resize a photo before printing, and what is the weather forecast for the city of Oslo?"

    def taken(**search: Any) -> list[str]:
        pane.patch(session, settings={"search": search or None})
        return sorted(selected(pane.preview(session, message)["context"]))

    assert taken() == ["reference:photos", "weather:get_forecast"]
    assert taken(text={"enabled": False}) == ["weather:get_forecast"]
    assert taken(tools={"enabled": False}) == ["reference:photos"]
    assert taken(text={"top_n": 0, "include_score": 1}) == ["weather:get_forecast"]
    assert taken(tools={"top_n": 0, "include_score": 1}) == ["reference:photos"]
    assert taken(top_n=0, include_score=1) == []


@pytest.mark.spec("S1.100", "S1.113")
def test_a_sessions_search_settings_are_laid_over_its_agents_and_both_change_what_is_sent(pane: Product) -> None:
    folder = library(pane, "settled")
    session = pane.session(folder)
    other = pane.session(folder)

    folder.agent(search={"deadline_s": DEADLINE_S, "floor": 1, "include_score": 1})
    by_agent = pane.ask(session, REFUND)["request_context"]
    pane.patch(session, settings={"search": {"floor": 0.2}})
    by_session = pane.ask(session, REFUND)["request_context"]
    of_other = pane.ask(other, REFUND)["request_context"]
    pane.patch(session, settings={"search": {"enabled": False}})
    off = pane.ask(session, REFUND)["request_context"]

    assert [selected(context) for context in (by_agent, by_session, of_other, off)] == [
        [],
        ["reference:billing"],
        [],
        [],
    ]
    assert [candidate["code"] for candidate in off["candidates"]] == ["selection_off"] * 3
    assert "A refund takes five days." not in str(pane.sent)


@pytest.mark.spec("S1.72")
def test_a_search_takes_its_settings_from_the_call(pane: Product) -> None:
    folder = studio(pane, "calls")
    pane.preview(pane.session(folder), "Everything is embedded by now.")

    by_count = [len(found(pane, folder, "printing photos", top_n=count, include_score=1)) for count in (0, 1, 2)]
    beyond = found(pane, folder, "printing photos", top_n=0, include_score=0.3)

    assert by_count == [0, 1, 2]
    assert len(beyond) > 1
    assert min(item["evidence"]["score"] for item in beyond) >= 0.3


@pytest.mark.parametrize("preset", ["aggressive", "conservative"])
def test_an_agents_preset_is_what_its_turns_are_recorded_with(pane: Product, preset: str) -> None:
    folder = library(pane, f"preset-{preset}")
    folder.agent(search={"deadline_s": DEADLINE_S, "preset": preset})

    context = pane.preview(pane.session(folder), REFUND)["context"]

    floors = {"aggressive": 0.15, "conservative": 0.4}
    assert {candidate["evidence"]["floor"] for candidate in context["candidates"]} == {floors[preset]}
