"""OpenAI's vocabulary of tokens, without what the package around it reads besides.

`import bpe_openai` reads three vocabularies into dictionaries of Python, which nothing here uses: half a second, 75 MB.
Its compiled part has its own, and is all that counting takes.
"""

import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Protocol, cast

PACKAGE = "bpe_openai"
COMPILED = f"{PACKAGE}._bindings"
NAME = "o200k_base"


class TokenVocabulary(Protocol):
    """Turns texts into tokens and back."""

    def count(self, text: str) -> int:
        """Return how many tokens a text is."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        ...

    def decode(self, tokens: list[int]) -> str:
        """Return the text of tokens.

        Raises:
            ValueError: the last one ends inside a character.
        """
        ...


@cache
def vocabulary() -> TokenVocabulary:
    """Return the vocabulary, loading it at the first call."""
    return cast("TokenVocabulary", _compiled().tokenizer_for_encoding(NAME))


def as_unicode(text: str) -> str:
    """Return a text as the vocabulary takes it: half of a surrogate pair is no text, and is replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _compiled() -> ModuleType:
    if COMPILED not in sys.modules:
        package = find_spec(PACKAGE)
        spec = PathFinder.find_spec(COMPILED, package.submodule_search_locations) if package else None
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"No module named {COMPILED!r}", name=COMPILED)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        # It can be loaded once in a process: every later import gets this one.
        sys.modules[COMPILED] = module
    return sys.modules[COMPILED]
