"""The keys that texts are encrypted with.

A **master key** comes from the environment or from a file and is never stored. It encrypts no conversation: it wraps
the data keys of sessions, names texts, and encrypts the agents' own texts, which sessions share. Each use has a key of
its own, derived from the master key. A **data key** belongs to one session, encrypts its texts, and is stored with it,
wrapped. When the session is deleted its key is gone, and no copy of its texts that was left anywhere can be read.

Several master keys may be given: the first one writes, all of them read.
"""

import base64
import binascii
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from windowpane.context.ids import SessionId
from windowpane.errors import InvalidSettingError, WrongEncryptionKeyError

KEY_BYTES = 32
"""AES-256."""

_NONCE_BYTES = 12
_KEY_ID_BYTES = 9
_MASTER_ID_BYTES = 6
_NAMING_BYTES = 64
_URL_SAFE = str.maketrans("-_", "+/")
_HEX = re.compile(r"[0-9a-fA-F]{64}")


class DamagedSealError(Exception):
    """A sealed text was changed, or is not the one that belongs here."""


def bound_to(kind: str, session_id: str = "", position: int | str = "") -> bytes:
    """Return what a sealed text is bound to: it cannot be opened as another kind, in another session or place."""
    return f"{kind}:{position}:{session_id}".encode()


def seal(cipher: AESGCM, text: bytes, binding: bytes) -> bytes:
    """Return a text encrypted and authenticated, behind its random nonce."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, text, binding)


def unseal(cipher: AESGCM, sealed: bytes, binding: bytes) -> bytes:
    """Return the text.

    Raises:
        DamagedSealError: it was changed, or belongs to another place.
    """
    try:
        return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], binding)
    except (InvalidTag, ValueError):
        raise DamagedSealError from None


@dataclass(frozen=True, slots=True)
class DataKey:
    """The key of one session's texts. `wrapped` is the form in which it is stored."""

    id: str
    cipher: AESGCM
    wrapped: str


class MasterKey:
    """One key of the operator, and what is derived from it."""

    def __init__(self, secret: bytes) -> None:
        self.id = _derived(secret, "id", _MASTER_ID_BYTES).hex()
        self.agent_cipher = AESGCM(_derived(secret, "agent texts", KEY_BYTES))
        self.cache_cipher = CacheCipher(_derived(secret, "cache", _NAMING_BYTES + KEY_BYTES))
        self.message_cipher = AESGCM(_derived(secret, "messages", KEY_BYTES))
        self._wrapping = AESGCM(_derived(secret, "data keys", KEY_BYTES))
        self._naming = AESSIV(_derived(secret, "names", _NAMING_BYTES))

    def new_data_key(self, session_id: SessionId) -> DataKey:
        """Return a new key for the texts of a session."""
        key_id, secret = to_text(os.urandom(_KEY_ID_BYTES)), AESGCM.generate_key(KEY_BYTES * 8)
        wrapped = seal(self._wrapping, secret, bound_to("key", session_id, key_id))
        return DataKey(key_id, AESGCM(secret), f"{self.id}.{to_text(wrapped)}")

    def unwrap(self, session_id: SessionId, key_id: str, wrapped: str) -> DataKey:
        """Return a data key from the form in which it is stored.

        Raises:
            DamagedSealError: it was changed, or is the key of another session.
        """
        secret = unseal(self._wrapping, from_text(wrapped.partition(".")[2]), bound_to("key", session_id, key_id))
        return DataKey(key_id, AESGCM(secret), wrapped)

    def name(self, kind: str, session_id: str, named: bytes) -> str:
        """Return the name under which something is stored: the same each time. Only this key tells what it names."""
        return to_text(self._naming.encrypt(named, [bound_to(kind, session_id)]))

    def named(self, kind: str, session_id: str, name: str) -> bytes | None:
        """Return what a name stands for, or None when another key made it."""
        try:
            return self._naming.decrypt(from_text(name), [bound_to(kind, session_id)])
        except (InvalidTag, DamagedSealError, ValueError):
            return None


class CacheCipher:
    """Encrypts the entries of a cache, each bound to its name."""

    def __init__(self, secret: bytes) -> None:
        self._naming = AESSIV(secret[:_NAMING_BYTES])
        self._cipher = AESGCM(secret[_NAMING_BYTES:])

    def name(self, key: bytes) -> bytes:
        """Return the name under which an entry is kept."""
        return self._naming.encrypt(key, None)

    def seal(self, name: bytes, entry: bytes) -> bytes:
        """Return an entry encrypted."""
        return seal(self._cipher, entry, name)

    def unseal(self, name: bytes, sealed: bytes) -> bytes | None:
        """Return an entry, or None when it is damaged."""
        try:
            return unseal(self._cipher, sealed, name)
        except DamagedSealError:
            return None


class KeyRing:
    """The master keys of a process. The first one writes."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self.all = tuple(MasterKey(secret) for secret in secrets)
        self.writing = self.all[0]
        self.ids = tuple(key.id for key in self.all)

    @classmethod
    def parse(cls, text: str, setting: str) -> Self:
        """Return the keys that a setting or a key file holds, separated by commas, spaces or line breaks.

        Raises:
            InvalidSettingError: there is none, or one of them is not a key.
        """
        return cls([_secret(word, setting) for word in re.split(r"[\s,]+", text.strip())])

    def of(self, sealed: str) -> MasterKey:
        """Return the master key that a stored text names.

        Raises:
            WrongEncryptionKeyError: it is not among those that were given.
        """
        wanted = sealed.partition(".")[0]
        for key in self.all:
            if key.id == wanted:
                return key
        raise WrongEncryptionKeyError(wanted, self.ids)

    def seal_message(self, session_id: SessionId, message: bytes) -> bytes:
        """Return a message about a session as others who have the keys read it."""
        return seal(self.writing.message_cipher, message, bound_to("message", session_id))

    def unseal_message(self, session_id: SessionId, sealed: bytes) -> bytes | None:
        """Return a message about a session, or None when no key of this ring sealed it."""
        for key in self.all:
            with suppress(DamagedSealError):
                return unseal(key.message_cipher, sealed, bound_to("message", session_id))
        return None


def to_text(value: bytes) -> str:
    """Return bytes as text that every store keeps as it is."""
    return binascii.b2a_base64(value, newline=False).decode()


def from_text(text: str) -> bytes:
    """Return the bytes that a text stands for.

    Raises:
        DamagedSealError: it is not such a text.
    """
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise DamagedSealError from None


def _derived(secret: bytes, use: str, length: int) -> bytes:
    return HKDFExpand(SHA256(), length, f"windowpane {use}".encode()).derive(secret)


def _secret(word: str, setting: str) -> bytes:
    try:
        secret = (
            bytes.fromhex(word) if _HEX.fullmatch(word) else base64.b64decode(word.translate(_URL_SAFE), validate=True)
        )
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        # The value is a secret, so the message does not show it.
        raise InvalidSettingError(
            setting, "a key is 32 random bytes in base64; make one with `openssl rand -base64 32`"
        )
    return secret
