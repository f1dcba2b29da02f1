from dataclasses import replace
from datetime import UTC, datetime
from weakref import ref

from pydantic import TypeAdapter

from windowpane.context.identity_cache import MOST, cached_by_identity, cached_in
from windowpane.context.items import Tool, item_hash
from windowpane.context.messages import UserMessage
from windowpane.context.request import RequestMessage


def test_it_is_worked_out_once_for_each_object() -> None:
    asked: list[str] = []

    @cached_by_identity
    def length(tool: Tool) -> int:
        asked.append(tool.name)
        return len(tool.name)

    first, second = Tool("files", "read"), Tool("files", "write")

    assert [length(first), length(second), length(first), length(second)] == [4, 5, 4, 5]
    assert asked == ["read", "write"]


def test_objects_that_are_gone_are_never_taken_for_others() -> None:
    hashes = [item_hash(Tool("files", f"tool {number % 100}")) for number in range(MOST + 200)]

    assert len(set(hashes)) == 100
    assert all(found == hashes[number % 100] for number, found in enumerate(hashes))


def test_what_follows_from_a_message_is_worked_out_once_and_is_no_part_of_it() -> None:
    asked: list[str] = []

    @cached_in("_hash")
    def length(message: RequestMessage) -> int:
        asked.append(message.content)
        return len(message.content)

    message = RequestMessage(role="user", content="Hello", part="message")
    same = RequestMessage(role="user", content="Hello", part="message")

    assert [length(message), length(message), length(replace(message, name="copy"))] == [5, 5, 5]
    assert asked == ["Hello", "Hello"]
    assert (message, repr(message), hash(message)) == (same, repr(same), hash(same))
    codec = TypeAdapter(RequestMessage)
    assert codec.dump_json(message) == codec.dump_json(same)
    assert codec.validate_json(codec.dump_json(message)) == message


def test_what_was_worked_out_of_a_message_is_gone_with_it() -> None:
    class Rendering:
        pass

    @cached_in("_past")
    def rendering(message: UserMessage) -> Rendering:
        return Rendering()

    message = UserMessage(content="My number is 7.", seq=1, at=datetime(2026, 1, 1, tzinfo=UTC))
    gone = ref(rendering(message))
    assert gone() is rendering(message)

    del message

    assert gone() is None
