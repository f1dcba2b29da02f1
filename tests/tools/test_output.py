from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent

from windowpane.context.messages import NewFile
from windowpane.tools.base import ToolOutput
from windowpane.tools.output import MAX_CHARACTERS, output


def test_texts_are_joined_line_by_line() -> None:
    result = CallToolResult(content=[TextContent(text="one"), TextContent(text="two")])

    assert output(result) == ToolOutput("one\ntwo")


def test_what_the_tool_calls_an_error_is_an_output_that_says_so() -> None:
    assert output(CallToolResult(content=[TextContent(text="no")], is_error=True)) == ToolOutput("no", is_error=True)


def test_structured_content_is_read_only_when_no_text_repeats_it() -> None:
    picture: list[ContentBlock] = [ImageContent(data="AAAA", mime_type="image/png")]
    words: list[ContentBlock] = [TextContent(text="3 apples")]

    assert output(CallToolResult(content=words, structured_content={"apples": 3})) == ToolOutput("3 apples")
    assert output(CallToolResult(content=picture, structured_content={"apples": 3})) == ToolOutput(
        '{"apples":3}\n[image image/png, 3 bytes]', files=(NewFile("image.png", b"\0\0\0"),)
    )


def test_an_output_that_is_too_long_ends_with_how_much_is_missing() -> None:
    exact = "x" * MAX_CHARACTERS

    assert output(CallToolResult(content=[TextContent(text=exact)])) == ToolOutput(exact)
    assert output(CallToolResult(content=[TextContent(text=exact + "yz")])) == ToolOutput(
        f"{exact}\n[cut: 2 of 100,002 characters left out]"
    )
