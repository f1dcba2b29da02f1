"""The names of items as people write them: `rule:tone`, `reference:billing`, `weather:get_forecast`."""

from windowpane.context.items import ItemRef, reference_ref, rule_ref, tool_ref
from windowpane.errors import InvalidInputError


def as_ref(item: ItemRef | str) -> ItemRef:
    """Return the ref that a text names: `rule:NAME`, `reference:NAME`, or `SERVER:TOOL`.

    Raises:
        InvalidInputError: the text has no such form.
    """
    if isinstance(item, ItemRef):
        return item
    before, colon, name = item.partition(":")
    if not before or not colon or not name:
        raise InvalidInputError(f"{item!r} names no item; write rule:NAME, reference:NAME or SERVER:TOOL")
    if before == "rule":
        return rule_ref(name)
    return reference_ref(name) if before == "reference" else tool_ref(before, name)
