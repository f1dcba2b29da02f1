from dataclasses import replace

import pytest

from windowpane.context.items import Reference, Rule, Tool
from windowpane.search.documents import document, embedded_text, passages, spelled_out


@pytest.mark.spec("S1.42", "S1.43")
@pytest.mark.parametrize("kind", [Rule, Reference])
def test_a_rule_or_reference_is_indexed_as_name_description_and_text(kind: type[Rule] | type[Reference]) -> None:
    assert document(kind("style", "Use tabs.", "How code looks")).text == "style: How code looks\n\nUse tabs."
    assert document(kind("style", "Use tabs.")).text == "style\n\nUse tabs."


@pytest.mark.spec("S1.44")
def test_a_tool_is_indexed_as_name_and_description_with_its_parameters() -> None:
    nested = {"type": "array", "items": {"properties": {"size": {"description": "In pixels"}}}}
    parameters = {"properties": {"path": {"description": "The file"}, "crop": nested, "odd": True}}

    assert document(Tool("files", "resize")).text == "resize"
    assert document(Tool("files", "resize", "Resize an image")).text == "resize: Resize an image"
    assert document(Tool("files", "resize", "Resize an image", parameters)).text == (
        "resize: Resize an image\npath: The file\ncrop\nsize: In pixels\nodd"
    )


def test_rules_and_references_are_one_domain_and_tools_another() -> None:
    items = [Rule("a", ""), Reference("b", ""), Tool("s", "c")]

    assert [document(item).domain for item in items] == ["text", "text", "tool"]


def test_a_schema_that_makes_no_sense_is_indexed_as_far_as_it_does() -> None:
    assert document(Tool("s", "odd", "", {"properties": ["not", "a", "mapping"]})).text == "odd"
    assert document(Tool("s", "odd", "", {"properties": {"a": {"description": 7}}})).text == "odd\na"


def test_a_passage_is_embedded_below_the_name_in_plain_words() -> None:
    doc = document(Reference("imageResizing", "Use the resize tool.", "About sizes"))

    first, second = passages(doc)

    assert embedded_text(doc, first) == "image resizing: About sizes"
    assert embedded_text(doc, second) == "image resizing\nUse the resize tool."
    assert doc.text[second.start : second.end] == "Use the resize tool."


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getUserById", "get user by id"),
        ("read_file", "read file"),
        ("HTTPServer2", "http server 2"),
        ("How do I reset it?", "How do I reset it?"),
        ("größe", "größe"),
        ("---", "---"),
    ],
)
def test_names_are_spelled_out(name: str, words: str) -> None:
    assert spelled_out(name) == words


def test_a_title_that_says_more_than_name_and_text_is_searched_too() -> None:
    guide = Reference("sizes", "Choose a width.", description="Widths and heights", title="Photo Resizing Guide")

    assert document(guide).head == "sizes: Photo Resizing Guide. Widths and heights"
    assert document(replace(guide, title="sizes")).head == "sizes: Widths and heights"
    assert document(replace(guide, text="# Photo Resizing Guide")).head == "sizes: Widths and heights"
