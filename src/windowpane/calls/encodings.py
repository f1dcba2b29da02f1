"""Undo the compression of a body: gzip, deflate, Brotli and Zstandard.

Unlike a client's decoder this one also gives what a body that broke off had said, and never more than a limit.
"""

import sys
import zlib
from typing import Any, cast

import brotli as untyped_brotli  # pyright: ignore[reportMissingTypeStubs]  # it has none

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

MOST_BYTES = 64 * 1024 * 1024
"""What is longer than this when it is not compressed is not looked at."""

MOST_ENCODINGS = 4
"""How many times a body may be compressed over."""

brotli = cast("Any", untyped_brotli)


def decoded(encoding: str, body: bytes, most_bytes: int = MOST_BYTES) -> bytes | None:
    """Return what a body says, or None when it cannot be told: another encoding, damaged, or too long."""
    text = body
    names = [part.strip().lower() for part in encoding.split(",") if part.strip()]
    if len(names) > MOST_ENCODINGS:
        return None
    for name in reversed(names):
        if name == "identity":
            continue
        try:
            found = _decoded_once(name, text, most_bytes)
        except (zlib.error, brotli.error, ZstdError):
            return None
        if found is None:
            return None
        text = found
    return text if len(text) <= most_bytes else None


def _decoded_once(name: str, body: bytes, most_bytes: int) -> bytes | None:
    if name in {"gzip", "x-gzip", "deflate"}:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, most_bytes + 1)
    if name == "zstd":
        return ZstdDecompressor().decompress(body, most_bytes + 1)
    if name == "br":
        return cast("bytes", brotli.Decompressor().process(body, output_buffer_limit=most_bytes + 1))
    return None
