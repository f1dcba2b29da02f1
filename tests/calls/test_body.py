"""Bodies are kept so that each can be put together again to the byte, and what was sent before is not stored again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windowpane.calls.body import join, keep
from windowpane.calls.skeleton import LastBody
from windowpane.context.ids import BlobHash

TEXTS = st.text(max_size=30) | st.sampled_from(["word " * 400, "Zeile ü 🚤 " * 300, "A" * 3000])
ELEMENTS = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXTS}) | st.integers()
CHANGES = st.lists(st.tuples(st.integers(0, 12), ELEMENTS), max_size=6)


def bodies_of(messages: list[Any], changes: list[tuple[int, Any]], *, indented: bool) -> list[bytes]:
    """Return the bodies of a conversation: each changes one message of the one before, or adds one."""
    found: list[bytes] = []
    for at, element in [(len(messages), 1), *changes]:
        messages = [*messages[:at], element, *messages[at + 1 :]]
        body = {"model": "m", "max_tokens": len(messages), "messages": messages, "tools": [{"name": "x" * 5000}]}
        found.append(json.dumps(body, ensure_ascii=at % 2 == 0, indent=1 if indented else None).encode())
    return found


@given(st.lists(ELEMENTS, max_size=8), CHANGES, st.booleans())
def test_every_body_of_a_conversation_is_read_back_to_the_byte(
    messages: list[Any], changes: list[tuple[int, Any]], indented: bool
) -> None:
    stored: dict[BlobHash, str] = {}
    last: LastBody | None = None
    bodies = bodies_of(messages, changes, indented=indented)
    names: list[BlobHash] = []

    for body in bodies:
        kept, last = keep(body, last)
        stored |= kept.blobs
        names.append(kept.name)

    assert [join(stored[name], stored) for name in names] == bodies


def test_a_body_that_adds_a_message_to_a_long_conversation_hands_over_that_message_alone() -> None:
    messages = [{"role": "user", "content": f"Message {number}. {'word ' * 1000}"} for number in range(50)]
    before = json.dumps({"model": "m", "messages": messages}).encode()
    added = {"role": "user", "content": "The last one. " * 500}
    after = json.dumps({"model": "m", "messages": [*messages, added]}).encode()

    _, last = keep(before)
    kept, _ = keep(after, last)

    assert [text for name, text in kept.blobs.items() if name != kept.name] == [added["content"]]
