"""Find the items that a message mentions: `@rule:name` and `@reference:name`.

The message itself is left exactly as it is.
"""

import re

from windowpane.context.items import ItemRef, reference_ref, rule_ref

MENTION = re.compile(r"(?<![\w@])@(rule|reference):([A-Za-z0-9_-]+)")


def mentions(message: str) -> tuple[ItemRef, ...]:
    """Return the mentioned items, each once, in the order of the message."""
    found = (
        rule_ref(match[2]) if match[1] == "rule" else reference_ref(match[2]) for match in MENTION.finditer(message)
    )
    return tuple(dict.fromkeys(found))
