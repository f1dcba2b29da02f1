"""References that a session makes from files: selected by passages, kept for this session alone, erased with it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from files.samples import docx, pdf, png
from stores.kinds import KEY
from windowpane.api.replay import WhatIf
from windowpane.api.sessions import OwnReferenceView
from windowpane.context.events import ReferenceAdded
from windowpane.context.ids import SessionId, content_hash
from windowpane.context.items import AgentText, Reference, definition, reference_ref
from windowpane.context.messages import NewFile
from windowpane.errors import InvalidInputError, UnknownItemError
from windowpane.files.references import MAX_CHARACTERS, FileWords
from windowpane.local.pane import LocalPane
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.documents import document, embedded_text, passages
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache, vector_key
from windowpane.search.index import ItemIndex
from windowpane.stores.copy import copy_store
from windowpane.stores.encrypted.keys import KeyRing
from windowpane.stores.encrypted.store import EncryptedStore
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World

WORDS = "Every quagga in the zoo is fed with hay at seven."
QUESTION = "Is the quagga in the zoo fed with hay?"
NOTES = NewFile("../Zoo notes.md", f"# The zoo\n\n{WORDS}\n".encode())
OWN = FileWords("Zoo notes.md", f"# The zoo\n\n{WORDS}\n").own("Zoo-notes")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "sessions.db"))
    world.selector = HybridSelector(ItemIndex(None))
    world.reference("billing", "Refunds take five days.", include="agent")
    world.says(*["Hello."] * 5)
    return world


async def given(pane: LocalPane, session: str, turn: int) -> list[str]:
    """Return which references a turn was given."""
    request = await pane.turns.request(session, turn)
    return [item.name for item in request.context.items if item.type == "reference" and item.status == "used"]


async def texts(pane: LocalPane, session: str) -> list[str]:
    """Return every text of a session in which the words of the file stand."""
    store, own = pane.engine.store, SessionId(session)
    kept = await store.blobs(own, await store.blob_hashes(own))
    return [text for text in kept.values() if "hay at seven" in text]


@pytest.mark.parametrize(
    "file",
    [
        NewFile("zoo.md", f"# The zoo\n\n{WORDS}".encode()),
        NewFile("zoo.txt", WORDS.encode("utf-16")),
        NewFile("zoo.pdf", pdf("The zoo", WORDS)),
        NewFile("zoo.docx", docx("The zoo", WORDS)),
    ],
    ids=lambda file: file.name,
)
async def test_a_file_becomes_a_reference_that_a_message_selects_by_its_passage(world: World, file: NewFile) -> None:
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        other = (await pane.sessions.create()).id
        await pane.sessions.add_reference(session, file)
        preview = await pane.preview(session, QUESTION)
        await pane.ask(session, QUESTION)
        await pane.ask(session, "Do refunds take five days?")
        await pane.ask(other, QUESTION)

        [chosen] = [item for item in preview.context.items if item.name == "zoo"]
        assert chosen.evidence is not None
        assert "quagga" in (chosen.evidence.passage.text if chosen.evidence.passage else "")
        assert chosen.version == "this session"
        assert await given(pane, session, 1) == ["zoo"]
        assert await given(pane, session, 2) == ["billing"]
        assert await given(pane, other, 1) == []
        assert WORDS in "".join(message.content for message in world.model.calls[0].messages)


async def test_a_turn_with_such_a_reference_is_explained_and_rebuilt_exactly_after_its_removal(world: World) -> None:
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        await pane.sessions.add_reference(session, NOTES)
        await pane.ask(session, QUESTION)
        before = await pane.turns.request(session, 1)
        held = await pane.turns.context(session, 1)
        removed = await pane.sessions.remove_reference(session, "Zoo-notes")
        gone = await pane.turns.context(session, 1)
        await pane.ask(session, QUESTION)

        explained = await pane.explain(session, 1, "reference:Zoo-notes")
        rebuilt = await pane.turns.rebuild(session, 1)
        again = await pane.turns.replay(session, 1, WhatIf())
        assert (removed.references, removed.remains) == ((), ("the record of turn 1 keeps its words",))
        assert await pane.turns.request(session, 1) == before
        assert [item.changed_since for item in (*held.items, *gone.items)] == ["unchanged", "deleted"]
        assert explained.included
        assert rebuilt.damages == ()
        assert [(each.ref.name, each.selected, each.was_selected) for each in again.outcomes] == [
            ("Zoo-notes", True, True),
            ("billing", False, False),
        ]
        assert await given(pane, session, 2) == []
        with pytest.raises(UnknownItemError):
            await pane.explain(session, 2, "reference:Zoo-notes")

        await pane.sessions.clear_history(session)
        assert await texts(pane, session) == []


async def test_a_reference_that_no_turn_had_is_erased_when_it_is_removed(world: World) -> None:
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        await pane.ask(session, "Hello")
        added = await pane.sessions.add_reference(session, NOTES)
        await pane.sessions.add_item(session, reference_ref("Zoo-notes"))
        held = await texts(pane, session)
        removed = await pane.sessions.remove_reference(session, "Zoo-notes")

        [view] = added.references
        assert view == OwnReferenceView(**asdict(OWN), title="The zoo", tokens=view.tokens)
        assert view.tokens > len(WORDS.split())
        assert len(held) == 1
        assert (removed.references, removed.remains) == ((), ())
        assert await pane.sessions.items(session) == ()
        assert await texts(pane, session) == []
        with pytest.raises(UnknownItemError, match="Zoo-notes"):
            await pane.sessions.remove_reference(session, "Zoo-notes")


async def test_clearing_the_history_keeps_the_references_and_another_agent_too(world: World) -> None:
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        await pane.sessions.add_reference(session, NOTES)
        await pane.sessions.add_item(session, reference_ref("Zoo-notes"))
        await pane.ask(session, QUESTION)
        cleared = await pane.sessions.clear_history(session)
        await pane.agents.create("other", copy_of="pane")
        changed = await pane.sessions.update(session, {"agent": "other"})
        await pane.ask(session, "Hello")

        assert cleared.own_references == changed.own_references == (OWN,)
        assert [item.ref for item in changed.items] == [reference_ref("Zoo-notes")]
        assert await given(pane, session, 2) == ["Zoo-notes"]


async def test_names_are_the_files_and_none_is_taken_twice(world: World) -> None:
    names = ["billing.txt", "billing.pdf.txt", "Überblick (neu).txt", "日本.txt", "billing.md", "x" * 100]
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        for number, name in enumerate(names):
            await pane.sessions.add_reference(session, NewFile(name, f"Text {number}.".encode()))
        await pane.sessions.add_reference(session, NewFile(names[0], b"Text 0."))
        found = await pane.sessions.own_references(session)

    assert [own.name for own in found.references] == [
        "billing-2",
        "billing-pdf",
        "Uberblick-neu",
        "document",
        "billing-3",
        "x" * 60,
    ]
    assert {own.origin for own in found.references} == {"this session"}


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (NewFile("cat.png", png()), "'cat.png' is an image and has no words: PDF, Word documents"),
        (NewFile("a.zip", b"PK\x03\x04rest"), "'a.zip' is damaged, or of a kind"),
        (NewFile("scan.pdf", pdf("")), "no words can be read in the file 'scan.pdf'"),
        (NewFile("blank.txt", b" \n "), "no words can be read in the file 'blank.txt'"),
        (NewFile("empty.txt", b""), "'empty.txt' is empty"),
        (NewFile("long.txt", b"a" * (MAX_CHARACTERS + 1)), "'long.txt' has more than 1,000,000 characters"),
        (NewFile("large.txt", b"a" * 3_000_000), "'large.txt' has 3,000,000 bytes and 2,000,000 is the limit"),
    ],
    ids=lambda each: each.name if isinstance(each, NewFile) else "",
)
async def test_a_file_without_usable_words_is_refused_and_nothing_changes(
    world: World, file: NewFile, why: str
) -> None:
    async with world.pane(attachment_bytes=2_000_000) as pane:
        session = await pane.sessions.create()

        with pytest.raises(InvalidInputError, match=why.replace("(", r"\(")):
            await pane.sessions.add_reference(session.id, file)

        assert await pane.sessions.get(session.id) == session


async def test_a_session_makes_twenty_references_at_most(world: World) -> None:
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        for number in range(20):
            await pane.sessions.add_reference(session, NewFile("a.txt", f"Text {number}.".encode()))

        with pytest.raises(InvalidInputError, match="20 references of its own, the most there can be; remove one"):
            await pane.sessions.add_reference(session, NOTES)


async def test_an_export_a_fork_and_a_copy_hold_the_references(world: World) -> None:
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        await pane.sessions.add_reference(session, NOTES)
        await pane.ask(session, "Hello")
        exported = await pane.sessions.export(session)
        imported = await pane.sessions.import_(exported)
        forked = await pane.sessions.fork(session, 1)
        await pane.ask(imported.id, QUESTION)
        await pane.ask(forked.id, QUESTION)

        assert imported.own_references == forked.own_references == (OWN,)
        assert await given(pane, imported.id, 2) == await given(pane, forked.id, 1) == ["Zoo-notes"]

        without = replace(exported, blobs={name: text for name, text in exported.blobs.items() if name != OWN.blob})
        with pytest.raises(InvalidInputError, match="Zoo-notes"):
            await pane.sessions.import_(without)
        other = definition(FileWords("a.txt", "Obey.").reference("Zoo-notes"))
        lie = replace(OWN, blob=content_hash(other))
        events = tuple(
            replace(entry, event=ReferenceAdded(reference=lie, actor="user"))
            if isinstance(entry.event, ReferenceAdded)
            else entry
            for entry in exported.events[:2]
        )
        with pytest.raises(InvalidInputError, match="'Zoo-notes' is not what the session says of it"):
            await pane.sessions.import_(replace(exported, events=events, blobs={lie.blob: other}))


async def test_the_words_are_encrypted_with_the_session_and_shared_with_no_other(world: World, tmp_path: Path) -> None:
    plain, ring = world.store, KeyRing.parse(KEY, "encryption_key")
    world.store = EncryptedStore(SQLiteStore(tmp_path / "sealed.db"), ring)
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        await pane.sessions.add_reference(session, NOTES)
        await pane.ask(session, QUESTION)
        sealed = await texts(pane, session)
    world.store = plain
    world.says("Hello.")
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        await pane.sessions.add_reference(session, NOTES)
        await pane.ask(session, QUESTION)
        world.store = EncryptedStore(MemoryStore(), ring)
        async with world.pane() as target:
            await copy_store(pane.engine.store, target.engine.store)
            copied = await texts(target, session)

    assert sealed
    assert [text for text in sealed if isinstance(text, AgentText)] == []
    assert copied
    assert [text for text in copied if isinstance(text, AgentText)] == []


async def test_what_the_search_measures_of_the_words_is_not_kept_on_disk(world: World, tmp_path: Path) -> None:
    world.write("agent.yaml", "model: scripted:test\nsearch: {deadline_s: 60}\n")
    embedder, cache = MiniLM(tmp_path / "model"), VectorCache(tmp_path / "vectors")
    world.selector = HybridSelector(ItemIndex(embedder, cache))
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        await pane.sessions.add_reference(session, NOTES)
        await pane.ask(session, QUESTION)
        chosen = await given(pane, session, 1)
        of_agent = (await pane.engine.agents.look("pane")).references[0]

    def kept(*items: Reference) -> list[int]:
        docs = [document(item) for item in items]
        keys = [[vector_key(embedder.model, embedded_text(doc, each)) for each in passages(doc)] for doc in docs]
        return [len(cache.read(each)) for each in keys]

    words = FileWords("Zoo notes.md", f"# The zoo\n\n{WORDS}\n").reference("Zoo-notes")
    assert chosen == ["Zoo-notes"]
    assert kept(of_agent, words) == [2, 0]
