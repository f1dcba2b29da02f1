"""Text that can be kept and sent, and what it calls itself.

Python's strings may hold half a character, a surrogate without its other half; JSON and UTF-8 have no place for it.
"""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def valid_unicode(text: str) -> str:
    """Return a text that UTF-8 can carry: halves that belong together are joined, and others become U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def first_heading(text: str) -> str | None:
    """Return the words of the first heading that is not inside a code block, or None."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
        elif not fence and (heading := _HEADING.match(line)):
            return _without_closing(heading.group(1).strip()) or None
    return None


def _without_closing(heading: str) -> str:
    words = heading.rstrip("#")
    return words.rstrip() if words != heading and words[-1:] in ("", " ", "\t") else heading


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*)")
