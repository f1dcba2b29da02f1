import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windowpane.errors import FetchRefusedError
from windowpane.fetch.urls import normalised, page_url, shown


@pytest.mark.parametrize(
    ("url", "known_as"),
    [
        ("HTTPS://Example.COM", "https://example.com/"),
        ("https://example.com:443/a#part", "https://example.com/a"),
        ("HTTP://example.com:80/a", "http://example.com/a"),
        ("http://example.com:8080/a", "http://example.com:8080/a"),
        ("http://example.com/a/../b", "http://example.com/b"),
        ("https://example.com/?utm_source=x&id=1", "https://example.com/?utm_source=x&id=1"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://me:secret@example.com/a", "https://example.com/a"),
        ("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/"),
        ("  https://example.com/a  ", "https://example.com/a"),
    ],
)
def test_a_page_has_one_spelling(url: str, known_as: str) -> None:
    assert normalised(page_url(url)) == known_as


@given(st.text(max_size=60).map(lambda rest: f"http://{rest}") | st.text(max_size=40))
@example("HTTP://h:80/")
@example("http://h:080/")
@example("http://h/\ud800")
@example("http://[::1%25eth0]/")
def test_a_text_is_no_address_or_has_a_spelling_that_stays(text: str) -> None:
    try:
        once = normalised(page_url(text))
    except FetchRefusedError:
        return

    assert normalised(page_url(once)) == once


@pytest.mark.parametrize(
    "url", ["", "example.com", "/a", "file://example.com/a", "javascript:alert(1)", "http://", "ftp://h/"]
)
def test_only_addresses_of_web_pages_are_addresses(url: str) -> None:
    with pytest.raises(FetchRefusedError):
        page_url(url)


def test_a_message_shows_no_password_and_no_query() -> None:
    assert shown(page_url("https://me:secret@example.com/a?token=secret")) == "https://example.com/a"
    assert len(shown(page_url("https://example.com/" + "a" * 5000))) == 200
    with pytest.raises(FetchRefusedError) as refused:
        page_url("https://me:secret@example.com:port/?token=secret")
    assert "secret" not in str(refused.value)
