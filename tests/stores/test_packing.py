from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from windowpane.stores.packing import pack, unpack

RECORD = b'{"context":{"id":"req_1","turn":2,"settings":{"model":"echo","max_output_tokens":4096,"cache":"fresh"}}}' * 2


@given(st.binary(max_size=400) | st.text(max_size=400).map(str.encode) | st.integers(0, 40).map(lambda n: RECORD * n))
def test_what_is_packed_is_unpacked_as_it_was(body: bytes) -> None:
    packed = pack(body)

    assert unpack(packed) == body
    assert len(packed) <= len(body) + 1


def test_what_every_version_packed_is_read() -> None:
    # The last one was packed with the dictionary: when it changes, nothing that is stored can be read.
    with_words = bytes.fromhex("0228b52ffd20d00d0100386563686f7d7d7d0700650de9e414ca80a99021a4420a7d850fe40b01f8aa4020")

    assert [unpack(each) for each in (b"\0" + RECORD, b"\1" + zlib.compress(RECORD, 1), with_words)] == [RECORD] * 3


def test_words_that_records_have_in_common_are_not_stored_in_each() -> None:
    assert len(pack(RECORD)) < len(RECORD) / 3


@given(st.lists(st.binary(max_size=400).map(lambda each: each * 3), min_size=1, max_size=6))
def test_a_text_is_packed_the_same_whatever_was_packed_before(bodies: list[bytes]) -> None:
    with ThreadPoolExecutor(max_workers=1) as another_thread:
        alone = another_thread.submit(pack, bodies[-1]).result()

    assert [pack(body) for body in bodies][-1] == alone
