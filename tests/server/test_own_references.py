"""References made from files, over HTTP."""

from __future__ import annotations

import base64

import pytest

from server.place import engine_of, listening, new_session, served
from windowpane.client import Client
from windowpane.context.messages import NewFile
from windowpane.errors import InvalidInputError
from windowpane.server.app import create_app
from windowpane.server.middleware.limits import MAX_BODY_BYTES
from windowpane.testing import World

WORDS = b"Every quagga in the zoo is fed with hay at seven."


async def test_a_file_is_sent_listed_and_removed(world: World) -> None:
    async with served(world) as http:
        path = f"/api/sessions/{await new_session(http)}"
        file = {"name": "zoo.txt", "data": base64.b64encode(WORDS).decode()}
        added = await http.post(f"{path}/references", json=file)
        again = await http.post(f"{path}/references", json=file)
        listed = await http.get(f"{path}/references")
        session = (await http.get(path)).json()
        refused = await http.post(f"{path}/references", json={"name": "a.bin", "data": "AAEC"})
        removed = await http.delete(f"{path}/references/zoo")
        missing = await http.delete(f"{path}/references/zoo")

    [own] = added.json()["references"]
    assert own == {
        "name": "zoo",
        "file": "zoo.txt",
        "blob": own["blob"],
        "characters": len(WORDS),
        "origin": "this session",
        "title": "zoo.txt",
        "tokens": own["tokens"],
    }
    assert own["tokens"] >= 11
    assert (added.status_code, again.json(), listed.json()) == (201, added.json(), added.json())
    assert session["own_references"] == [{name: own[name] for name in own if name not in ("title", "tokens")}]
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    assert (removed.status_code, removed.json()) == (200, {"references": [], "remains": []})
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_item")


async def test_a_client_sends_a_file_that_is_larger_than_other_bodies(world: World) -> None:
    large = b"%PDF-" + b"\xff" * MAX_BODY_BYTES
    async with listening(create_app(engine_of(world))) as url, Client(url) as client:
        session = (await client.sessions.create()).id
        added = await client.sessions.add_reference(session, NewFile("zoo.txt", WORDS))
        with pytest.raises(InvalidInputError, match=r"no words can be read in the file 'scan.pdf'"):
            await client.sessions.add_reference(session, NewFile("scan.pdf", large))
        listed = await client.sessions.own_references(session)
        removed = await client.sessions.remove_reference(session, "zoo")

    assert [own.name for own in added.references] == ["zoo"]
    assert listed == added
    assert removed.references == ()
