"""Find in a page's HTML what a person would read: its title, its site, its main text.

Pages come from strangers. What trafilatura cannot cope with, and pages of so many elements that it would take too
long, give all of their text instead of the main part.
"""

import re
from dataclasses import dataclass
from typing import Any

MAX_TAGS = 200_000
"""A page is read up to here: deeply nested tags take far longer than in proportion to their number."""

MAX_ELEMENTS = 30_000
TITLE_CHARACTERS = 300

XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]{0,200}\?>")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
TITLES = ("string(//meta[@property='og:title']/@content)", "string(//title)", "string(//h1)")
SITE_NAMES = (
    "string(//meta[@property='og:site_name']/@content)",
    "string(//meta[@name='application-name']/@content)",
)


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a page says. Each is empty when the page does not have it."""

    title: str = ""
    site_name: str = ""
    text: str = ""


def extract(html: str) -> Extracted:
    """Return what can be read in a page or in a part of one."""
    # Not at the top: it takes a tenth of a second, and few processes read a page.
    from trafilatura import html2txt
    from trafilatura.utils import load_html

    document = _document(html)
    tree: Any = load_html(document)
    if tree is None:
        return Extracted()
    title, site_name = _first(tree, TITLES), _first(tree, SITE_NAMES)
    text = _main_text(tree) if _is_small(tree) else ""
    return Extracted(title, site_name, plain(text or html2txt(document)))


def plain(text: str) -> str:
    """Return a text without characters that cannot be seen or stored, its line ends all alike."""
    return UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def one_line(text: str) -> str:
    """Return a title or a name on one line, cut when it is too long to be one."""
    line = " ".join(plain(text[: 10 * TITLE_CHARACTERS]).split())
    return line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1]}…"


def _document(html: str) -> str:
    """Return a whole document in characters that the parser takes, without a claim about bytes that are no more."""
    document = XML_DECLARATION.sub("", plain("<".join(html.split("<", MAX_TAGS)[:MAX_TAGS])))
    return document if "<html" in document[:2000].lower() else f"<html><body>{document}</body></html>"


def _first(tree: Any, paths: tuple[str, ...]) -> str:
    return next((found for path in paths if (found := one_line(str(tree.xpath(path))))), "")


def _is_small(tree: Any) -> bool:
    return all(count < MAX_ELEMENTS for count, _ in enumerate(tree.iter()))


def _main_text(tree: Any) -> str:
    from trafilatura import bare_extraction

    try:
        found: Any = bare_extraction(tree, include_comments=False)
    except Exception:  # noqa: BLE001 -- a stranger's HTML may break the extractor anywhere, and all of the text is left
        return ""
    return str(found.text or "") if found else ""
