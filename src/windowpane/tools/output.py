"""Turn what a tool gave back into the text that the model reads.

Text stays as it is. What is not text (pictures, sound, files) is named with its kind and size, so that the model
knows it was there; pictures and files come along, for models that take them. Very long outputs are cut, and the cut is
marked with how much is missing.
"""

import base64
import binascii
import json
import mimetypes
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from windowpane.context.messages import NewFile
from windowpane.context.text import valid_unicode
from windowpane.tools.base import ToolOutput

MAX_CHARACTERS = 100_000
EMPTY = "(no output)"
MOST_LINKS, LONGEST_LINK = 100, 2000
"""Which links of one result can be followed: so many, of so many characters."""


def output(result: CallToolResult) -> ToolOutput:
    """Return a tool's result as one text, with its files."""
    return ToolOutput(
        _cut(_text(result)),
        is_error=result.is_error,
        files=tuple(_files(result.content)),
        links=_links(result.content),
    )


def read_output(result: ReadResourceResult) -> ToolOutput:
    """Return a resource that was read as one text, with its files."""
    content = [EmbeddedResource(resource=resource) for resource in result.contents]
    return ToolOutput(_cut("\n".join(map(_block, content)) or EMPTY), files=tuple(_files(content)))


def _links(content: Sequence[ContentBlock]) -> tuple[str, ...]:
    uris = dict.fromkeys(str(block.uri) for block in content if isinstance(block, ResourceLink))
    return tuple(uri for uri in uris if len(uri) <= LONGEST_LINK and uri == valid_unicode(uri))[:MOST_LINKS]


def _files(content: Sequence[ContentBlock]) -> Iterator[NewFile]:
    """Yield the files of a result. What is not base64 is no file."""
    for block in content:
        match block:
            case ImageContent():
                name, data = f"image{mimetypes.guess_extension(block.mime_type) or ''}", block.data
            case EmbeddedResource(resource=BlobResourceContents() as resource):
                name, data = str(resource.uri), resource.blob
            case _:
                continue
        with suppress(binascii.Error, ValueError):
            yield NewFile(name, base64.b64decode(data, validate=True))


def _text(result: CallToolResult) -> str:
    blocks = [_block(block) for block in result.content]
    # A server repeats structured content as text for readers such as ours; only without that text is it needed.
    if result.structured_content is not None and not _has_text(result.content):
        blocks.insert(0, json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(blocks) or EMPTY


def _has_text(content: Sequence[ContentBlock]) -> bool:
    return any(isinstance(block, TextContent) and block.text for block in content)


def _block(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.type} {block.mime_type}, {_size(block.data)} bytes]"
        case ResourceLink():
            return f"[resource {block.uri} {block.title or block.name}]"
        case EmbeddedResource():
            return _resource(block.resource)


def _resource(resource: TextResourceContents | BlobResourceContents) -> str:
    if isinstance(resource, TextResourceContents):
        return resource.text
    kind = resource.mime_type or "application/octet-stream"
    return f"[resource {resource.uri} {kind}, {_size(resource.blob)} bytes]"


def _size(base64_text: str) -> int:
    return len(base64_text.rstrip("=")) * 3 // 4


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    missing = len(text) - MAX_CHARACTERS
    return f"{text[:MAX_CHARACTERS]}\n[cut: {missing:,} of {len(text):,} characters left out]"
