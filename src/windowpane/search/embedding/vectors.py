"""Keep vectors on disk, so that nothing is embedded twice.

A vector is filed under the hash of (model, chunker version, embedded text): an edited
passage has another key, and one that was only moved has the same. The file belongs to
everyone on the machine who uses the same cache directory; SQLite keeps many processes apart. It is
a cache: a damaged entry is as good as none, a damaged file is replaced by an empty one,
and one that cannot be written is done without.

Vectors are stored as whole numbers. A vector of length 1 becomes one of length `SCALE` with whole
components, and then every sum of products stays below 2²⁴, where 32-bit floats count
exactly: the nearness of two vectors is the same number on every machine, in whatever
order it adds.
"""

import hashlib
import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windowpane.search.chunks import CHUNKER_VERSION
from windowpane.search.embedding.base import Vectors

SCALE = 4000
"""The length of a stored vector; its square is less than 2²⁴ with room for rounding."""

MOST_VECTORS = 500_000
"""The cache forgets what was not used longest beyond this many (about 400 MB at 384 dimensions)."""

Stored = NDArray[np.int16]
Key = bytes

_AT_ONCE = 500
_STALE_S = 86_400.0
_DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def vector_key(model: str, text: str) -> Key:
    """Return the key of a text's vector."""
    return hashlib.sha256(f"{model}\0{CHUNKER_VERSION}\0{text}".encode(errors="surrogatepass")).digest()


def stored(vectors: Vectors) -> Stored:
    """Return vectors of length 1 in the form that is kept and compared."""
    return np.rint(vectors * SCALE).astype(np.int16)


class EntryCipher(Protocol):
    """Encrypts the entries of a cache, each bound to its name."""

    def name(self, key: Key) -> bytes:
        """Return the name under which an entry is kept."""
        ...

    def seal(self, name: bytes, entry: bytes) -> bytes:
        """Return an entry encrypted."""
        ...

    def unseal(self, name: bytes, sealed: bytes) -> bytes | None:
        """Return an entry, or None when it is damaged."""
        ...


class VectorCache:
    """The file of vectors. Every method may block, and may be called from any thread.

    With a cipher the file tells neither which texts were embedded nor what they mean.
    """

    def __init__(self, directory: Path, most_vectors: int = MOST_VECTORS, *, cipher: EntryCipher | None = None) -> None:
        self.path = directory / "vectors.db"
        self._most_vectors = most_vectors
        self._cipher = cipher

    def read(self, keys: Sequence[Key]) -> dict[Key, Stored]:
        """Return the vectors that are there and whole."""
        try:
            return self._read(keys)
        except sqlite3.DatabaseError as error:
            # One that is busy or cannot be opened is not damaged, and others may use it.
            if error.sqlite_errorcode & 0xFF in _DAMAGED:
                self._discard()
        except OSError:
            pass
        return {}

    def write(self, vectors: Mapping[Key, Stored]) -> bool:
        """Keep vectors, and tell whether that was possible."""
        for _ in range(2):
            try:
                self._write(vectors)
                return True
            except sqlite3.OperationalError:
                return False
            except sqlite3.DatabaseError:
                self._discard()
            except OSError:
                return False
        return False

    def __len__(self) -> int:
        """Return how many vectors are kept."""
        try:
            with closing(self._open()) as db:
                return int(db.execute("SELECT count(*) FROM vectors").fetchone()[0])
        except (sqlite3.DatabaseError, OSError):
            return 0

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=5.0)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            # The last vectors before a power cut may be lost: they are computed again.
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(
                "CREATE TABLE IF NOT EXISTS vectors"
                " (key BLOB PRIMARY KEY, vector BLOB NOT NULL, checksum INTEGER NOT NULL, used_at REAL NOT NULL)"
                " WITHOUT ROWID"
            )
        except BaseException:
            db.close()
            raise
        return db

    def _read(self, keys: Sequence[Key]) -> dict[Key, Stored]:
        if not self.path.exists():
            return {}
        found: dict[Key, Stored] = {}
        stale: list[Key] = []
        now = time.time()
        with closing(self._open()) as db:
            names = {key if self._cipher is None else self._cipher.name(key): key for key in keys}
            for some in _groups(list(names)):
                marks = ",".join("?" * len(some))
                query = f"SELECT key, vector, checksum, used_at FROM vectors WHERE key IN ({marks})"  # noqa: S608 (only marks)
                for name, entry, checksum, used_at in db.execute(query, some):
                    if (vector := self._unsealed(name, entry, checksum)) is not None:
                        found[names[name]] = np.frombuffer(vector, "<i2").astype(np.int16, copy=False)
                        if now - used_at > _STALE_S:
                            stale.append(name)
            if stale:
                # Not worth failing for: a busy or read-only file is only read.
                with suppress(sqlite3.OperationalError), db:
                    db.executemany("UPDATE vectors SET used_at = ? WHERE key = ?", [(now, key) for key in stale])
        return found

    def _write(self, vectors: Mapping[Key, Stored]) -> None:
        now = time.time()
        entries = (self._sealed(key, vector.astype("<i2").tobytes()) for key, vector in vectors.items())
        rows = [(name, entry, zlib.crc32(entry), now) for name, entry in entries]
        with closing(self._open()) as db, db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
            count = int(db.execute("SELECT count(*) FROM vectors").fetchone()[0])
            if count > self._most_vectors:
                db.execute(
                    "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors ORDER BY used_at, key LIMIT ?)",
                    (count - self._most_vectors,),
                )

    def _sealed(self, key: Key, vector: bytes) -> tuple[bytes, bytes]:
        if self._cipher is None:
            return key, vector
        name = self._cipher.name(key)
        return name, self._cipher.seal(name, vector)

    def _unsealed(self, name: bytes, entry: object, checksum: int) -> bytes | None:
        if not isinstance(entry, bytes) or zlib.crc32(entry) != checksum:
            return None
        return entry if self._cipher is None else self._cipher.unseal(name, entry)

    def _discard(self) -> None:
        """Remove a damaged file; a process that still has it open keeps its copy."""
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + suffix).unlink()


def _groups(keys: Sequence[Key]) -> Iterable[Sequence[Key]]:
    return (keys[i : i + _AT_ONCE] for i in range(0, len(keys), _AT_ONCE))
