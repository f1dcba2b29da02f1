import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windowpane.fetch.charset import codec_of, decode

GERMAN = "Größe über alles: Übermäßig schöne Äpfel für müde Füße."
RUSSIAN = "Цены на чай выросли на двенадцать процентов, сообщили в понедельник производители чая."


@pytest.mark.parametrize(
    ("body", "label", "text"),
    [
        (GERMAN.encode(), "utf-8", GERMAN),
        (GERMAN.encode(), "", GERMAN),
        (GERMAN.encode("cp1252"), "iso-8859-1", GERMAN),
        ("“quoted” – 5 €".encode("cp1252"), "latin1", "“quoted” – 5 €"),
        (RUSSIAN.encode("cp1251"), "windows-1251", RUSSIAN),
        ("日本語の文章です".encode("cp932"), "Shift_JIS", "日本語の文章です"),
        ("中文网页".encode("gb18030"), "gb2312", "中文网页"),
        (b"\xef\xbb\xbf" + GERMAN.encode(), "iso-8859-1", GERMAN),
        (b"\xff\xfe" + GERMAN.encode("utf-16-le"), "utf-8", GERMAN),
        (b"\xfe\xff" + GERMAN.encode("utf-16-be"), "", GERMAN),
        (b'<meta charset="windows-1251">' + RUSSIAN.encode("cp1251"), "", f'<meta charset="windows-1251">{RUSSIAN}'),
        (
            b'<?xml version="1.0" encoding="koi8-r"?>' + RUSSIAN.encode("koi8-r"),
            "",
            f'<?xml version="1.0" encoding="koi8-r"?>{RUSSIAN}',
        ),
        (b'<meta charset="utf-16">' + GERMAN.encode(), "", f'<meta charset="utf-16">{GERMAN}'),
    ],
)
def test_a_page_is_read_in_the_charset_that_it_names(body: bytes, label: str, text: str) -> None:
    assert decode(body, label) == text


def test_a_label_that_the_bytes_contradict_is_passed_over() -> None:
    declared = b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">'

    assert decode(declared + RUSSIAN.encode("cp1251"), "utf-8") == declared.decode() + RUSSIAN
    assert decode(RUSSIAN.encode("koi8-r") * 3, "utf-8") == RUSSIAN * 3


def test_one_broken_byte_does_not_change_how_the_rest_is_read() -> None:
    body = GERMAN.encode() * 3

    assert decode(body + b"\xff" + body, "utf-8") == GERMAN * 3 + "\N{REPLACEMENT CHARACTER}" + GERMAN * 3


@pytest.mark.parametrize(
    "label", ["utf-7", "zip", "rot13", "idna", "punycode", "unicode_escape", "undefined", "x", "é", "a\0b"]
)
def test_a_codec_that_is_no_charset_of_the_web_is_not_one(label: str) -> None:
    assert codec_of(label) is None


@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "utf-16", "shift_jis", "gb2312", "nonsense"]))
@example(b"", "")
@example(b"\xff\xfe\x00", "")
@example(b'<meta charset="iso-2022-jp">\x1b$B', "")
def test_any_bytes_give_some_text(body: bytes, label: str) -> None:
    assert isinstance(decode(body, label), str)
