"""Text that can be kept and sent.

Python's strings may hold half a character, a surrogate without its other half; JSON and UTF-8 have no place for it.
"""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def valid_unicode(text: str) -> str:
    """Return a text that UTF-8 can carry: halves that belong together are joined, and others become U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
