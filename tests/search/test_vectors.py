import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from windowpane.search.embedding.vectors import SCALE, Stored, VectorCache, stored, vector_key
from windowpane.stores.encrypted.keys import KeyRing


def vector(seed: int) -> Stored:
    values = np.random.default_rng(seed).standard_normal((1, 384))
    return stored((values / np.linalg.norm(values)).astype(np.float32))[0]


def keyed(*numbers: int) -> dict[bytes, Stored]:
    return {vector_key("model", str(number)): vector(number) for number in numbers}


def same(found: dict[bytes, Stored], expected: dict[bytes, Stored]) -> bool:
    return found.keys() == expected.keys() and all((found[key] == expected[key]).all() for key in expected)


@pytest.mark.spec("S1.103")
def test_vectors_are_there_for_the_next_process(tmp_path: Path) -> None:
    VectorCache(tmp_path).write(keyed(1, 2))

    found = VectorCache(tmp_path).read([*keyed(1, 2, 3)])

    assert same(found, keyed(1, 2))


def test_a_key_belongs_to_a_text_and_a_model() -> None:
    keys = {vector_key("a", "x"), vector_key("b", "x"), vector_key("a", "y"), vector_key("a", "x")}

    assert len(keys) == 3


def test_a_damaged_entry_is_as_good_as_none(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.write(keyed(1, 2))
    with sqlite3.connect(cache.path) as db:
        db.execute("UPDATE vectors SET vector = zeroblob(768) WHERE key = ?", (vector_key("model", "1"),))
    db.close()

    found = cache.read([*keyed(1, 2)])

    assert same(found, keyed(2))


@pytest.mark.parametrize("damage", [b"this is no database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_file_is_replaced(tmp_path: Path, damage: bytes) -> None:
    cache = VectorCache(tmp_path)
    cache.path.write_bytes(damage)

    assert cache.read([*keyed(1)]) == {}
    assert cache.write(keyed(1))
    assert same(cache.read([*keyed(1)]), keyed(1))


def test_a_file_that_cannot_be_opened_now_is_left_to_those_who_can(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.write(keyed(1))
    in_the_way = cache.path.with_name("vectors.db-wal")
    in_the_way.mkdir()

    while_it_cannot = cache.read([*keyed(1)])
    in_the_way.rmdir()

    assert while_it_cannot == {}
    assert same(cache.read([*keyed(1)]), keyed(1))


def test_a_place_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = VectorCache(tmp_path / "file")

    assert not cache.write(keyed(1))
    assert cache.read([*keyed(1)]) == {}
    assert len(cache) == 0


def test_the_cache_forgets_what_was_not_used_longest(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, most_vectors=3)
    for number in range(5):
        cache.write(keyed(number))

    assert len(cache) == 3
    assert same(cache.read([*keyed(0, 1, 2, 3, 4)]), keyed(2, 3, 4))


WRITER = """
import sys
from pathlib import Path
import numpy as np
from windowpane.search.embedding.vectors import VectorCache, vector_key
cache = VectorCache(Path(sys.argv[1]))
for number in range(40):
    key = vector_key("model", f"{sys.argv[2]} {number}")
    assert cache.write({key: np.full(384, number, np.int16)})
    assert (cache.read([key])[key] == number).all()
"""


def test_many_processes_may_write_at_once(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(i)]) for i in range(4)]

    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    assert len(VectorCache(tmp_path)) == 160


@pytest.mark.spec("S1.37", "S1.66")
def test_nearness_is_the_same_number_in_whatever_order_it_is_added() -> None:
    vectors = np.stack([vector(i) for i in range(200)]).astype(np.float32)
    shuffled = np.random.default_rng(7).permutation(384)

    exact = vectors.astype(np.int64) @ vectors[0].astype(np.int64)

    assert (vectors @ vectors[0] == exact).all()
    assert (vectors[:, shuffled] @ vectors[0, shuffled] == exact).all()
    assert abs(exact[0] / SCALE**2 - 1) < 0.001


def test_with_a_cipher_the_file_holds_neither_keys_nor_vectors_and_another_key_finds_nothing(tmp_path: Path) -> None:
    ours, others = (KeyRing([bytes([number]) * 32]).writing.cache_cipher for number in (1, 2))
    cache = VectorCache(tmp_path, cipher=ours)
    cache.write(keyed(1, 2))

    written = cache.path.read_bytes()
    assert same(VectorCache(tmp_path, cipher=ours).read([*keyed(1, 2, 3)]), keyed(1, 2))
    assert VectorCache(tmp_path, cipher=others).read([*keyed(1, 2)]) == {}
    assert VectorCache(tmp_path).read([*keyed(1, 2)]) == {}
    for key, one in keyed(1, 2).items():
        assert key not in written
        assert one.astype("<i2").tobytes()[:32] not in written


def test_a_vector_that_was_exchanged_in_an_encrypted_cache_is_as_good_as_none(tmp_path: Path) -> None:
    cipher = KeyRing([bytes(32)]).writing.cache_cipher
    cache = VectorCache(tmp_path, cipher=cipher)
    cache.write(keyed(1, 2))
    with sqlite3.connect(cache.path) as db:
        name = cipher.name(vector_key("model", "1"))
        db.execute(
            "UPDATE vectors SET (vector, checksum) = (SELECT vector, checksum FROM vectors WHERE key <> ?1) "
            "WHERE key = ?1",
            (name,),
        )
    db.close()

    assert same(cache.read([*keyed(1, 2)]), keyed(2))
