import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.search.chunks import CAP_CHARS, ENOUGH_CHARS, Chunk, chunks

ALPHABET = "ab .!?\n#。あ,;"
texts = st.text(alphabet=ALPHABET, max_size=3000) | st.text(max_size=2000)
paragraph = st.text(alphabet="abcde ", min_size=ENOUGH_CHARS, max_size=900).filter(
    lambda text: len(text.strip()) >= 120
)


@pytest.mark.spec("S1.36")
@given(texts)
def test_no_passage_is_longer_than_the_cap_and_none_is_empty(text: str) -> None:
    assert all(len(chunk.text.strip()) > 0 and len(chunk.text) <= CAP_CHARS for chunk in chunks(text))


@given(texts)
def test_every_passage_is_a_slice_of_its_text_and_they_stand_in_order(text: str) -> None:
    found = chunks(text)

    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in found)
    assert [chunk.start for chunk in found] == sorted({chunk.start for chunk in found})


@given(texts)
def test_nothing_is_lost_but_white_space_between_passages(text: str) -> None:
    covered = [False] * len(text)
    for chunk in chunks(text):
        covered[chunk.start : chunk.end] = [True] * (chunk.end - chunk.start)

    assert not "".join(char for char, seen in zip(text, covered, strict=True) if not seen).strip()


@pytest.mark.spec("S1.104")
@given(st.lists(paragraph, min_size=3, max_size=8), st.integers(0, 7), paragraph)
def test_an_edit_leaves_the_passages_of_other_paragraphs_as_they_are(
    paragraphs: list[str], where: int, new: str
) -> None:
    where %= len(paragraphs)
    edited = [*paragraphs[:where], new, *paragraphs[where + 1 :]]
    others = {c.text for p in (*paragraphs[:where], *paragraphs[where + 1 :]) for c in chunks(p)}

    after = {chunk.text for chunk in chunks("\n\n".join(edited))}

    assert others <= after


@given(st.text(alphabet="字漢あ", min_size=600, max_size=3000))
def test_text_without_spaces_is_cut_too(text: str) -> None:
    assert "".join(chunk.text for chunk in chunks(text)) == text


@pytest.mark.spec("S1.45")
def test_a_passage_is_a_paragraph() -> None:
    first, second = "One thing. " * 20, "Another thing. " * 20

    found = chunks(f"{first}\n\n{second}")

    assert [chunk.text for chunk in found] == [first.strip(), second.strip()]


@pytest.mark.spec("S1.46", "S1.47")
def test_a_long_paragraph_is_cut_at_sentences_that_are_then_put_together_up_to_the_cap() -> None:
    sentence = "This sentence has exactly one hundred characters, which makes the sums in this test rather simple.  "
    text = sentence * 12

    found = chunks(text)

    assert all(chunk.text.endswith("simple.") and chunk.text.startswith("This") for chunk in found)
    assert [len(chunk.text) for chunk in found] == [498, 498, 198]


def test_pieces_of_one_paragraph_share_a_short_sentence() -> None:
    text = "It is short. " * 60

    first, second, *_ = chunks(text)

    assert second.start < first.end
    assert text[second.start : first.end] == "It is short."


def test_a_heading_stays_with_what_it_heads() -> None:
    body = "The cache is keyed by content. " * 6

    assert chunks(f"# Caching\n\n## Keys\n\n{body}") == (
        Chunk(0, 20 + len(body.strip()), f"# Caching\n\n## Keys\n\n{body.strip()}"),
    )


def test_short_paragraphs_are_joined() -> None:
    assert [chunk.text for chunk in chunks("- one\n\n- two\n\n- three")] == ["- one\n\n- two\n\n- three"]


def test_punctuation_is_kept() -> None:
    text = "Is it? Yes! (It is.) " * 40

    assert "".join(chunk.text for chunk in chunks(text)).count("!") >= 40


@pytest.mark.parametrize("text", ["", "   ", "\n\n \n"])
def test_a_text_without_a_printing_character_has_no_passage(text: str) -> None:
    assert chunks(text) == ()
