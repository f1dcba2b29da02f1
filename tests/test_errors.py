"""The tree of errors: drawn once, in the docstring of the package, and drawn as it is."""

from __future__ import annotations

import re

from windowpane import errors
from windowpane.errors import WindowpaneError

BRANCH = re.compile(r"^    ([│├└─ ]*)(\w+Error)\b", re.MULTILINE)


def drawn() -> set[tuple[str, str]]:
    """Return each class with its parent, as the docstring draws them."""
    pairs: set[tuple[str, str]] = set()
    above: list[str] = []
    for indent, name in BRANCH.findall(errors.__doc__ or ""):
        del above[len(indent) // 4 :]
        if above:
            pairs.add((above[-1], name))
        above.append(name)
    return pairs


def real(parent: type[WindowpaneError]) -> set[tuple[str, str]]:
    """Return each class with its parent, as they are."""
    found: set[tuple[str, str]] = set()
    for child in parent.__subclasses__():
        # A module may have a private error of its own, and the client joins a server's error with its own.
        if child.__module__.startswith("windowpane.errors"):
            found |= {(parent.__name__, child.__name__)} | real(child)
    return found


def test_the_drawn_tree_is_the_real_one() -> None:
    assert drawn() == real(WindowpaneError)


def test_every_error_of_the_tree_is_exported() -> None:
    names = {"WindowpaneError"} | {name for _, name in real(WindowpaneError)}

    assert set(errors.__all__) == names
    assert all(isinstance(getattr(errors, name), type) for name in names)
