from windowpane.context.identity_cache import MOST, cached_by_identity
from windowpane.context.items import Tool, item_hash


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
