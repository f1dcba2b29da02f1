"""The sealed form of what a session keeps: events, texts, snapshots, and names that tell nothing.

Everything sealed is bound to its session and to its place there, so it cannot be put in another place unnoticed. Texts
are made smaller before they are sealed, as in a plain store.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from windowpane.context.events import Sealed
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import AgentText
from windowpane.stores.encrypted.keys import (
    DataKey,
    KeyRing,
    MasterKey,
    bound_to,
    from_text,
    seal,
    to_text,
    unseal,
)
from windowpane.stores.packing import pack, unpack

OWN = "s"
AGENT = "a"
KEY = "k"
"""How the name of a stored text begins: the session's own, its agent's, a wrapped data key."""

KEPT_CHARACTERS = 16 * 2**20
"""How much sealed text is remembered: the texts of a request are mostly those of the request before."""

_HASH_CHARACTERS = 64


def seal_event(key: DataKey, session_id: SessionId, seq: int, body: bytes) -> bytes:
    """Return an event's JSON as the JSON of a sealed one."""
    box = to_text(seal(key.cipher, body, bound_to("event", session_id, seq)))
    return f'{{"type":"sealed","key":"{key.id}","box":"{box}"}}'.encode()


def unseal_event(key: DataKey, session_id: SessionId, seq: int, sealed: Sealed) -> bytes:
    """Return an event's JSON.

    Raises:
        DamagedSealError: it was changed, or belongs to another place.
    """
    return unseal(key.cipher, from_text(sealed.box), bound_to("event", session_id, seq))


def seal_snapshot(key: DataKey, session_id: SessionId, seq: int, body: bytes) -> bytes:
    """Return the body of a snapshot sealed, behind the id of its key."""
    return key.id.encode() + b"." + seal(key.cipher, pack(body), bound_to("snapshot", session_id, seq))


def unseal_snapshot(key: DataKey, session_id: SessionId, seq: int, body: bytes) -> bytes:
    """Return the body of a snapshot.

    Raises:
        DamagedSealError: it was changed, or belongs to another place.
    """
    return unpack(unseal(key.cipher, body.partition(b".")[2], bound_to("snapshot", session_id, seq)))


def seal_vector(key: DataKey, session_id: SessionId, seq: int, body: bytes) -> bytes:
    """Return the vectors of a message sealed, behind the id of their key."""
    return key.id.encode() + b"." + seal(key.cipher, body, bound_to("vector", session_id, seq))


def unseal_vector(keys: Mapping[str, DataKey], session_id: SessionId, seq: int, body: bytes) -> bytes:
    """Return the vectors of a message.

    Raises:
        DamagedSealError: they were changed, or belong to another place.
    """
    key_id, _, sealed = body.partition(b".")
    return unseal(keys[key_id.decode("ascii")].cipher, sealed, bound_to("vector", session_id, seq))


def key_name(key_id: str) -> BlobHash:
    """Return the name under which a data key is stored."""
    return BlobHash(KEY + key_id)


def text_name(master: MasterKey, kind: str, session_id: SessionId, blob_hash: BlobHash) -> BlobHash:
    """Return the name under which a text is stored. Equal texts of two sessions have different names."""
    return BlobHash(kind + master.name(kind, _where(kind, session_id), bytes.fromhex(blob_hash)))


def text_names(keys: KeyRing, session_id: SessionId, blob_hash: BlobHash) -> tuple[BlobHash, ...]:
    """Return every name under which a text may be stored: none, when it is not the hash of a text."""
    if len(blob_hash) != _HASH_CHARACTERS or not set(blob_hash) <= set("0123456789abcdef"):
        return ()
    return tuple(text_name(master, kind, session_id, blob_hash) for master in keys.all for kind in (OWN, AGENT))


def text_hash(keys: KeyRing, session_id: SessionId, name: BlobHash) -> BlobHash | None:
    """Return the hash of the text that a name stands for, or None when none of these keys made the name."""
    kind = name[:1]
    for master in keys.all:
        if (named := master.named(kind, _where(kind, session_id), name[1:])) is not None:
            return BlobHash(named.hex())
    return None


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text that is about to be sealed, with everything that this takes."""

    text: str
    name: BlobHash
    key_id: str
    cipher: AESGCM
    session_id: SessionId

    def sealed(self) -> str:
        """Return the text sealed, behind the id of its key."""
        body = pack(self.text.encode("utf-8", "surrogatepass"))
        return f"{self.key_id}.{to_text(seal(self.cipher, body, _text_place(self.session_id, self.name)))}"


def plain_text(keys: KeyRing, key: DataKey, session_id: SessionId, blob_hash: BlobHash, text: str) -> PlainText:
    """Return a text ready to be sealed with the data key; an agent's with the master key, so that sessions share it."""
    master = keys.writing
    if isinstance(text, AgentText):
        name = text_name(master, AGENT, session_id, blob_hash)
        return PlainText(text, name, master.id, master.agent_cipher, session_id)
    return PlainText(text, text_name(master, OWN, session_id, blob_hash), key.id, key.cipher, session_id)


def unseal_text(cipher: AESGCM, session_id: SessionId, name: BlobHash, sealed: str) -> str:
    """Return a text; one of the agent's is marked as such.

    Raises:
        DamagedSealError: it was changed, or belongs to another place.
    """
    body = unseal(cipher, from_text(sealed.partition(".")[2]), _text_place(session_id, name))
    text = unpack(body).decode("utf-8", "surrogatepass")
    return AgentText(text) if name.startswith(AGENT) else text


def _text_place(session_id: SessionId, name: BlobHash) -> bytes:
    return bound_to("text", _where(name[:1], session_id), name)


def _where(kind: str, session_id: SessionId) -> str:
    """Return the session that a text belongs to; an agent's belongs to none."""
    return "" if kind == AGENT else session_id


class SealedTexts:
    """The texts that were sealed last, by the id of their key and by their hash."""

    def __init__(self) -> None:
        self._characters = 0
        self._texts: OrderedDict[tuple[str, BlobHash], tuple[BlobHash, str]] = OrderedDict()

    def get(self, key_id: str, blob_hash: BlobHash) -> tuple[BlobHash, str] | None:
        """Return the name and the sealed form of a text."""
        found = self._texts.get((key_id, blob_hash))
        if found is not None:
            self._texts.move_to_end((key_id, blob_hash))
        return found

    def put(self, key_id: str, blob_hash: BlobHash, name: BlobHash, sealed: str) -> None:
        """Remember a text; what was not used longest makes room."""
        if (key_id, blob_hash) in self._texts:
            return
        self._texts[key_id, blob_hash] = (name, sealed)
        self._characters += len(sealed)
        while self._characters > KEPT_CHARACTERS:
            _, (_, oldest) = self._texts.popitem(last=False)
            self._characters -= len(oldest)
