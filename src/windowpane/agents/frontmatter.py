"""Markdown files that begin with YAML between two lines of `---`.

The text after the second line is kept exactly as it is: only the line's own ending is taken away. A file that does
not begin with `---` is all text.
"""

import re
from dataclasses import dataclass

from windowpane.agents.tree import TableNode, TreeError, read_yaml

_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """A Markdown file in its two parts."""

    front: TableNode
    text: str


def read_document(content: str) -> MarkdownFile:
    """Return the two parts of a Markdown file.

    Raises:
        TreeError: the front matter is not closed, or is not a YAML table.
    """
    opening, written, _, text = split_document(content)
    if not opening:
        return MarkdownFile(TableNode(1, {}), content)
    front = read_yaml(written, first_line=2)
    if not isinstance(front, TableNode):
        raise TreeError(front.line, "front matter must be a table of names and values, such as `include: always`")
    return MarkdownFile(front, text)


def split_document(content: str) -> tuple[str, str, str, str]:
    """Return a Markdown file as it is written: the opening line, the front matter, the closing line, the text.

    Without front matter the first three are empty. Put together again they are the file.

    Raises:
        TreeError: the front matter is not closed.
    """
    opening = _OPENING.match(content)
    if opening is None:
        return "", "", "", content
    closing = _CLOSING.search(content, opening.end())
    if closing is None:
        raise TreeError(1, "front matter begins here and no second line of --- ends it")
    return opening.group(), content[opening.end() : closing.start()], closing.group(), content[closing.end() :]
