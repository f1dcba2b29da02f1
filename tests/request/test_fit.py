from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.request import Tier
from windowpane.errors import ContextTooLargeError
from windowpane.request.fit import CONVERSATION, ORDER, SHORTENED_TOKENS, Fitted, Piece, fit


def piece(key: str, tier: Tier, tokens: int, rank: int = 0, *, can_shorten: bool = False) -> Piece:
    return Piece(key=key, tier=tier, rank=(rank,), tokens=tokens, can_shorten=can_shorten)


def test_a_shorter_piece_further_down_takes_the_room_a_long_one_left() -> None:
    novel, note = piece("novel", "selected", 3000, 0), piece("note", "selected", 5, 1)

    assert fit([note, novel], 10) == (
        Fitted(novel, 0, "needs 3000 tokens; 10 were left after more important items"),
        Fitted(note, 5),
    )


def test_the_conversation_is_sent_without_gaps() -> None:
    latest = [piece(f"m{index}", "latest", 10, index) for index in range(2)]
    older = [piece("m2", "older", 500, 2), piece("m3", "older", 10, 3)]

    fitted = fit([*latest, *older], 100)

    assert [(f.piece.key, f.kept) for f in fitted] == [("m0", True), ("m1", True), ("m2", False), ("m3", False)]
    assert fitted[3].reason == "a later message did not fit; history is sent without gaps"


def test_a_reference_is_shortened_when_enough_room_is_left_for_it() -> None:
    reference = piece("reference:atlas", "manual", 5000, can_shorten=True)

    assert fit([reference], 1000) == (Fitted(reference, 1000, "shortened from 5000 to 1000 tokens to fit"),)
    assert not fit([reference], SHORTENED_TOKENS - 1)[0].kept


def test_what_must_be_sent_and_does_not_fit_is_an_error_that_names_the_largest() -> None:
    pieces = [piece("rule:a", "must", 50), piece("rule:b", "must", 70), piece("the message", "must", 5)]

    with pytest.raises(ContextTooLargeError) as caught:
        fit(pieces, 100)

    assert (caught.value.needed_tokens, caught.value.room_tokens) == (125, 100)
    assert caught.value.largest == ("rule:b (70 tokens)", "rule:a (50 tokens)", "the message (5 tokens)")


pieces_strategy = st.lists(
    st.builds(
        Piece,
        key=st.text(min_size=1, max_size=3),
        tier=st.sampled_from(ORDER[1:]),
        rank=st.tuples(st.integers(0, 5)),
        tokens=st.integers(0, 2000),
        can_shorten=st.booleans(),
    ),
    max_size=20,
    unique_by=lambda piece: piece.key,
)


@given(pieces_strategy, st.integers(0, 5000))
def test_the_budget_is_never_exceeded_and_every_piece_is_accounted_for(pieces: list[Piece], room: int) -> None:
    fitted = fit(pieces, room)

    assert sum(entry.tokens for entry in fitted) <= room
    assert sorted(entry.piece.key for entry in fitted) == sorted(piece.key for piece in pieces)
    assert all(entry.whole or entry.reason for entry in fitted)


@given(pieces_strategy, st.integers(0, 5000))
def test_nothing_is_cut_that_would_fit_beside_everything_more_important(pieces: list[Piece], room: int) -> None:
    left, gap = room, False
    for entry in fit(pieces, room):
        in_conversation = entry.piece.tier in CONVERSATION
        if not entry.kept:
            assert entry.piece.tokens > left or (gap and in_conversation)
        gap = gap or (in_conversation and not entry.kept)
        left -= entry.tokens


@given(pieces_strategy, st.integers(0, 5000), st.randoms())
def test_the_result_does_not_depend_on_the_order_of_the_pieces(pieces: list[Piece], room: int, random: object) -> None:
    shuffled = sorted(pieces, key=lambda piece: hash((piece.key, id(random))))

    assert fit(pieces, room) == fit(shuffled, room)
