from hypothesis import example, given, settings
from hypothesis import strategies as st

from fetch.site import ARTICLE, ARTICLE_TEXT
from windowpane.fetch.extract import MAX_ELEMENTS, MAX_TAGS, Extracted, extract, one_line, plain

PIECES = (
    *("<p>", "</p>", "<div>", "<table>", "<td>", "<html>", "</body>", "<a>", "<title>", "<!--", "<", ">", "&", "&#0;"),
    *("word", "\0", "\ud800", "é"),
)


def test_the_main_text_is_found_without_menus_and_footers() -> None:
    assert extract(ARTICLE) == Extracted("Tea is rising", "The Daily Cup", ARTICLE_TEXT)


def test_a_part_of_a_page_is_read_too() -> None:
    assert extract("<p>Just one line of a page.</p>") == Extracted(text="Just one line of a page.")


def test_a_page_in_which_no_main_text_is_found_gives_all_of_its_text() -> None:
    html = "<html><head><title>Menu</title></head><body><nav><a href='/'>Home</a></nav></body></html>"

    assert extract(html) == Extracted("Menu", "", "Home")


def test_a_page_is_read_up_to_a_number_of_tags() -> None:
    html = f"<html><body>first {'<a>' * (2 * MAX_TAGS)} last</body></html>"

    assert extract(html).text == "first"


def test_a_page_of_too_many_elements_gives_all_of_its_text() -> None:
    html = f"<html><body><nav>Menu</nav>{'<b>x</b> ' * (MAX_ELEMENTS + 1)}</body></html>"

    assert extract(html).text.startswith("Menu x x x")


def test_a_page_that_says_what_its_bytes_were_is_not_decoded_again() -> None:
    html = (
        '<?xml version="1.0" encoding="iso-8859-1"?><html><head><title>Größe</title></head><body><p>Ä</p></body></html>'
    )

    assert extract(html) == Extracted("Größe", "", "Ä")


def test_a_page_without_text_gives_none() -> None:
    assert extract("") == Extracted()
    assert extract("<html><head><title>T</title></head><body><script>x()</script></body></html>") == Extracted("T")


def test_broken_html_gives_what_can_be_read() -> None:
    html = "<html><body><div><p>One<div></p><table><tr>Two</b></i><td>Three</html><p>Four <<<< &bogus; &#0; <!--"

    assert "One" in extract(html).text


@settings(max_examples=60)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5)))
@example(["<html>" * 300])
@example(["<frameset>"])
def test_any_text_can_be_taken_for_html(pieces: list[str]) -> None:
    found = extract("".join(pieces))

    assert (plain(found.text), one_line(found.title)) == (found.text, found.title)
    found.text.encode()


@given(st.text())
def test_a_name_is_one_line_of_limited_length(text: str) -> None:
    line = one_line(text * 40)

    assert len(line) <= 300
    assert len(line.splitlines()) <= 1
    assert one_line(line) == line
