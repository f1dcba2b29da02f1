"""Files are known by their bytes, read within limits, and refused with a reason."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.samples import docx, gif, jpeg, pdf, png, webp
from windowpane.context.ids import content_hash
from windowpane.context.messages import Attachment, NewFile, as_bytes
from windowpane.errors import InvalidInputError
from windowpane.files.read import MAX_FILES, file_name, read_file, read_files
from windowpane.files.sniff import Sniffed, sniff
from windowpane.files.tokens import file_tokens
from windowpane.files.words import MAX_SECONDS, MAX_UNPACKED_BYTES, PDF_LIMITS, docx_words, pdf_words

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (png(40, 30), Sniffed("image/png", 40, 30)),
        (jpeg(640, 480), Sniffed("image/jpeg", 640, 480)),
        (gif(7, 9), Sniffed("image/gif", 7, 9)),
        (webp(1000, 500), Sniffed("image/webp", 1000, 500)),
        (pdf("Hello"), Sniffed("application/pdf")),
        (docx("Hello"), Sniffed(DOCX)),
        (b"# Notes\n\xc3\xa4", Sniffed("text/plain")),
        ("über".encode("utf-16"), Sniffed("text/plain")),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", Sniffed("text/plain")),
        (b"<!doctype html><script>alert(1)</script>", Sniffed("text/plain")),
    ],
    ids=["png", "jpeg", "gif", "webp", "pdf", "docx", "utf-8", "utf-16", "svg", "html"],
)
def test_what_a_file_is_tells_from_its_bytes(data: bytes, found: Sniffed) -> None:
    assert sniff(data) == found


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF\x02\x01\x01\x00",
        png()[:20],
        png()[:-40],
        jpeg()[:12],
        jpeg()[:-2],
        webp()[:20],
        b"PK\x03\x04 and nothing else",
        b"GIF89a",
        b"\xff\xd8\xff",
        b"a\x00b",
    ],
    ids=["empty", "elf", "png-head", "png-cut", "jpeg-head", "jpeg-cut", "webp-cut", "zip", "gif", "jpeg", "nul"],
)
def test_what_is_cut_off_or_of_another_kind_is_refused_and_named(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"holiday\.png"):
        read_file(NewFile("C:\\pictures\\holiday.png", data))


@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF", b"PK\x03\x04", b"%PDF-"]),
)
def test_no_bytes_make_reading_fail_in_another_way(data: bytes, head: bytes) -> None:
    file = NewFile("x", head + data)
    try:
        attachment, blobs = read_file(file)
    except InvalidInputError:
        return
    assert as_bytes(blobs[attachment.blob]) == file.data
    assert all(content_hash(text) == name for name, text in blobs.items())
    assert attachment.size == len(file.data)


def test_documents_say_what_they_say() -> None:
    paper, blobs = read_file(NewFile("paper.pdf", pdf("The answer is 42.", "Second page.")))
    assert (paper.kind, paper.pages, blobs[paper.text or paper.blob]) == ("pdf", 2, "The answer is 42.\n\nSecond page.")
    letter, blobs = read_file(NewFile("letter.docx", docx("Dear Ada,", "all is well.")))
    assert (letter.kind, blobs[letter.text or letter.blob]) == ("text", "Dear Ada,\nall is well.")


def test_a_document_that_unpacks_to_too_much_or_names_entities_has_no_words() -> None:
    assert docx_words(docx(body=b" " * (MAX_UNPACKED_BYTES + 10))) == ""
    assert docx_words(docx(body=b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')) == ""
    assert docx_words(docx(body='<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a/>'.encode("utf-16"))) == ""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<a>" + b"\n" * (MAX_UNPACKED_BYTES * 2))
    assert len(bomb.getvalue()) < 200_000
    attachment, _ = read_file(NewFile("bomb.docx", bomb.getvalue()))
    assert attachment.text is None


def test_a_document_is_read_for_so_long_and_no_longer() -> None:
    """A clock that jumps at its third look stands for a page, or a document, that takes for ever."""

    def clock() -> Callable[[], float]:
        looks = chain([0.0] * 3, repeat(MAX_SECONDS * 2))
        return lambda: next(looks)

    assert pdf_words(pdf("One.", "Two.", "Three."), clock()) == ("", 3)
    long = docx(*["All is well."] * 100_000)
    assert 0 < len(docx_words(long, clock())) < len(docx_words(long))


def test_a_page_that_is_made_of_too_much_has_no_words() -> None:
    drawn = b"BT /F1 12 Tf " + b"(Hi) Tj " * PDF_LIMITS["stream_parsing_work_maximum_count"] + b"ET"

    assert pdf_words(pdf("One.", drawn=drawn)) == ("", 1)


def test_a_paragraph_in_a_paragraph_is_said_once() -> None:
    said = (
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:t>not a paragraph</w:t>'
        "<w:p><w:t>Before</w:t><w:tab/><w:p><w:t>inside</w:t></w:p><w:t>after</w:t><w:br/>"
        "<w:x>no text</w:x></w:p></w:document>"
    )

    assert docx_words(docx(body=said.encode())) == "Before\t\ninside\nafter"


def test_a_polyglot_is_what_it_begins_with() -> None:
    both = gif() + b"<script>alert(1)</script>" + b"\x3b"
    assert read_file(NewFile("page.html", both))[0].media_type == "image/gif"


async def test_there_are_limits_to_how_many_and_how_much() -> None:
    with pytest.raises(InvalidInputError, match="20 files at most, not 21"):
        await read_files([NewFile("a.txt", b"a")] * (MAX_FILES + 1))
    with pytest.raises(InvalidInputError, match="12 bytes and 10 is the limit"):
        await read_files([NewFile("a.txt", b"abcdef")] * 2, limit_bytes=10)
    assert len((await read_files([NewFile("a.txt", b"abcde")] * 2, limit_bytes=10)).blobs) == 2


def test_a_name_is_one_short_line_without_folders() -> None:
    assert file_name("../../etc/pass\nwd\x00.txt") == "pass wd .txt"
    assert file_name("") == "file"
    assert len(file_name("a" * 900)) == 200


def _image(width: int, height: int) -> Attachment:
    return Attachment(name="a", media_type="image/png", size=1, blob=content_hash("a"), width=width, height=height)


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("openai:gpt-5", 1024, 1024, 765),
        ("openai:gpt-5", 2048, 4096, 1105),
        ("openai:gpt-5", 100, 100, 255),
        ("anthropic:claude-sonnet-4-5", 1000, 1000, 1334),
        ("anthropic:claude-sonnet-4-5", 200, 200, 54),
        ("google:gemini-2.5-pro", 300, 384, 258),
        ("google:gemini-2.5-pro", 1000, 700, 516),
    ],
)
def test_an_image_costs_what_its_provider_says(model: str, width: int, height: int, tokens: int) -> None:
    assert file_tokens(_image(width, height), model) == (tokens, False)


def test_what_no_rule_is_known_for_is_estimated_and_says_so() -> None:
    assert file_tokens(_image(1024, 1024), "ollama:llava") == (765, True)
    paper = Attachment(name="a", media_type="application/pdf", size=1, blob=content_hash("a"), pages=3)
    assert file_tokens(paper, "google:gemini-2.5-pro") == (774, False)
    assert file_tokens(paper, "anthropic:claude-sonnet-4-5") == (6750, True)
