"""Give every tool a name that any model provider takes, and find the tool again by it.

Providers take `[A-Za-z0-9_-]`, at most 64 of them, and some want a letter first. A tool is offered as `server__tool`
whenever that can be read back in only one way. Where it cannot (other letters, too long, a server whose own
underscores would blur the border) the name is made readable and ends in a digest of the true names. No such name
holds a double underscore, so the two forms never meet. A name depends on its own tool alone: others may come and go.
Only if two digests should ever be the same do both tools get their whole digest instead.
"""

import base64
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from windowpane.context.items import ItemRef, Tool

MAX_NAME = 64
DIGEST_LETTERS = 8
_SERVER_LETTERS = 20

_PLAIN_SERVER = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-]))*")
_PLAIN_TOOL = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class NameMap:
    """The names that tools are offered under, both ways."""

    refs: Mapping[str, ItemRef]
    names: Mapping[ItemRef, str]


def offer(tools: Iterable[Tool]) -> NameMap:
    """Return the offered name of every tool, whatever the order they come in."""
    return name_map([tool.ref for tool in tools])


def name_map(refs: Sequence[ItemRef], *, digest_letters: int = DIGEST_LETTERS) -> NameMap:
    """Return the offered names of these tools, with digests of the given length where they need one."""
    names = {ref: offered_name(ref, digest_letters=digest_letters) for ref in sorted(set(refs), key=_sort_key)}
    uses = Counter(names.values())
    names = {ref: name if uses[name] == 1 else _whole_digest(ref) for ref, name in names.items()}
    return NameMap(MappingProxyType({name: ref for ref, name in names.items()}), MappingProxyType(names))


def offered_name(ref: ItemRef, *, digest_letters: int = DIGEST_LETTERS) -> str:
    """Return the name that a tool is offered under when no other stands in its way."""
    server, tool = ref.server or "", ref.name
    plain = f"{server}__{tool}"
    if len(plain) <= MAX_NAME and _PLAIN_SERVER.fullmatch(server) and _PLAIN_TOOL.fullmatch(tool):
        return plain
    digest = _digest(ref)[:digest_letters]
    words = f"{_readable(server)[:_SERVER_LETTERS]}_{_readable(tool)}"
    if not words[0].isalpha():
        words = f"t_{words}"
    return f"{_single(words)[: MAX_NAME - 1 - digest_letters].rstrip('_')}_{digest}"


def _sort_key(ref: ItemRef) -> tuple[str, str, str]:
    return ref.sort_key


def _whole_digest(ref: ItemRef) -> str:
    return f"t_{_digest(ref)}"


def _digest(ref: ItemRef) -> str:
    """Return 52 letters that stand for these two names and no others."""
    server = ref.server or ""
    # The length draws the border between the names; lone surrogates are kept apart from the pairs they could form.
    text = f"{len(server)}:{server}{ref.name}".encode("utf-8", "surrogatepass")
    return base64.b32encode(hashlib.sha256(text).digest()).decode("ascii").rstrip("=").lower()


def _readable(text: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return _single(re.sub(r"[^A-Za-z0-9_-]", "_", ascii_text)).strip("_")


def _single(text: str) -> str:
    return re.sub(r"_{2,}", "_", text)
