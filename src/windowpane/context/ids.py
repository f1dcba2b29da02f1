"""Identifiers: what they look like and how they are made.

A session id cannot be guessed, so knowing one is not luck. A content hash names a text for good: two texts with one
hash are the same text.
"""

import hashlib
import secrets
from typing import Literal, NewType

SessionId = NewType("SessionId", str)
RequestId = NewType("RequestId", str)
BlobHash = NewType("BlobHash", str)

Actor = Literal["user", "model", "system"]
"""Who caused a change."""

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_session_id() -> SessionId:
    """Return an id with 128 random bits, safe in URLs, file names and Redis keys."""
    return SessionId(f"ses_{_random_text()}")


def new_request_id() -> RequestId:
    """Return an id for one request context."""
    return RequestId(f"req_{_random_text()}")


def new_holder_id() -> str:
    """Return an id for one holder of leases, such as a worker."""
    return f"own_{_random_text()}"


def content_hash(text: str) -> BlobHash:
    """Return the name of a text: SHA-256 over its UTF-8 form, in hex.

    Lone surrogates, which JSON can smuggle in, are hashed as they are rather than refused.
    """
    return BlobHash(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def _random_text() -> str:
    value = secrets.randbits(130)
    letters: list[str] = []
    for _ in range(26):
        value, index = divmod(value, 32)
        letters.append(ALPHABET[index])
    return "".join(letters)
