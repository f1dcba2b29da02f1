"""What the server does in one step: the scripts in `lua/`, each under the name that a server remembers it by.

Every script about a session begins with `lua/common.lua`, which says what it is given.

A use moves a session to the top of the index, but not more than once in `LISTED_EVERY_US`; listing looks that far
ahead. On one server the same step keeps the index. In a cluster the index is on other servers, and the script tells
the store when to keep it.
"""

from dataclasses import dataclass, field
from hashlib import sha1
from importlib.resources import files

LISTED_EVERY_US = 1_000_000
"""A session's entry in the index is at most this much older than its last use."""

HOLD_OLD_S = 3600
"""A reference to a bundle that was noted longer ago is looked at. An append takes no more than half of it."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the name under which a server remembers it."""

    body: bytes
    sha: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", sha1(self.body, usedforsecurity=False).hexdigest().encode())


_LUA = files("windowpane.stores.redis") / "lua"


def _lua(name: str) -> str:
    return (_LUA / f"{name}.lua").read_text(encoding="utf-8")


_COMMON = _lua("common").replace("LISTED_EVERY_US", str(LISTED_EVERY_US)).replace("HOLD_S", str(HOLD_OLD_S // 2))


def _about_session(name: str) -> Script:
    return Script((_COMMON + _lua(name)).encode())


APPEND = _about_session("append")
TOUCH = _about_session("touch")
DELETE = _about_session("delete")
ERASE = _about_session("erase")
PUT_SNAPSHOT = _about_session("put_snapshot")
PUT_PARTIAL = _about_session("put_partial")
PUT_VECTORS = _about_session("put_vectors")
ACQUIRE = _about_session("acquire")
RENEW = _about_session("renew")
RELEASE = _about_session("release")
DROP = Script(_lua("drop").encode())
HOLD = Script(_lua("hold").encode())
LET_GO = Script(_lua("let_go").encode())

BODIES = {
    one.sha: one.body
    for one in (
        *(APPEND, TOUCH, DELETE, ERASE, PUT_SNAPSHOT, PUT_PARTIAL, PUT_VECTORS, ACQUIRE, RENEW, RELEASE, DROP),
        *(HOLD, LET_GO),
    )
}
"""Every script by its name."""
