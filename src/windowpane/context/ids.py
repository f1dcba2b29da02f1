"""Identifiers: what they look like and how they are made.

A session id cannot be guessed, so knowing one is not luck. A content hash names a text for good: two texts with one
hash are the same text.
"""

import base64
import hashlib
import secrets
from typing import Literal, NewType

SessionId = NewType("SessionId", str)
RequestId = NewType("RequestId", str)
BlobHash = NewType("BlobHash", str)

Actor = Literal["user", "model", "system"]
"""Who caused a change."""

_UNLISTED = "\x1f"
"""No owner's name holds this character."""

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_session_id() -> SessionId:
    """Return an id with 128 random bits, safe in URLs, file names and Redis keys."""
    return SessionId(f"ses_{_random_text()}")


def keyed_session_id(owner: str, *key: str) -> SessionId:
    """Return the id of the session that this owner makes with this key: always the same one."""
    digest = hashlib.sha256("\x1f".join((owner, *key)).encode("utf-8", "surrogatepass")).digest()
    return SessionId(f"ses_{_as_text(int.from_bytes(digest))}")


def named_session_id(owner: str, agent: str, name: str) -> SessionId:
    """Return the id of the session that an owner calls by a name of their own. No name holds a line break."""
    digest = hashlib.sha256(f"{owner}\n{agent}\n{name}".encode()).digest()
    return SessionId(f"ses_{base64.b32encode(digest).decode().lower()[:26]}")


def new_request_id() -> RequestId:
    """Return an id for one request context."""
    return RequestId(f"req_{_random_text()}")


def new_holder_id() -> str:
    """Return an id for one holder of leases, such as a worker."""
    return f"own_{_random_text()}"


def unlisted(owner: str) -> str:
    """Return the name under which those of an owner's sessions are kept that no list shows."""
    return owner + _UNLISTED


def is_unlisted(name: str) -> bool:
    """Tell whether a session with this owner's name is one that no list shows."""
    return name.endswith(_UNLISTED)


def owner_of(name: str) -> str:
    """Return whose session it is, listed or not."""
    return name.removesuffix(_UNLISTED)


def content_hash(text: str) -> BlobHash:
    """Return the name of a text: SHA-256 over its UTF-8 form, in hex.

    Lone surrogates, which JSON can smuggle in, are hashed as they are rather than refused.
    """
    return BlobHash(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def _random_text() -> str:
    return _as_text(secrets.randbits(130))


def _as_text(value: int) -> str:
    letters: list[str] = []
    for _ in range(26):
        value, index = divmod(value, 32)
        letters.append(ALPHABET[index])
    return "".join(letters)
