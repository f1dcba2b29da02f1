"""Fetched context: what was brought in from outside for this conversation, such as web pages and search results.

It is data and never instruction: every request frames it as untrusted. A page that comes again replaces its older
copy; a search result is told apart by its address.
"""

from dataclasses import dataclass
from typing import Literal

FetchedKind = Literal["web_search", "page"]

MAX_CHARACTERS = 10_000
CUT_MARK = "\n[… cut: the page goes on]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One page or one search result. `content` is at most `MAX_CHARACTERS` long, the mark of a cut included."""

    kind: FetchedKind
    url: str
    content: str
    title: str = ""
    site_name: str = ""
    query: str = ""

    @property
    def key(self) -> tuple[FetchedKind, str]:
        """Return what makes this the same thing as an older one."""
        return (self.kind, self.url)


def capped(content: str) -> str:
    """Return a text that fits, with a visible mark where it was cut."""
    if len(content) <= MAX_CHARACTERS:
        return content
    return content[: MAX_CHARACTERS - len(CUT_MARK)] + CUT_MARK
