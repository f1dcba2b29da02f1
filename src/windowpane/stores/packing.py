"""Bytes made smaller where it pays. The first byte tells whether it did."""

import zlib

_PLAIN = b"\0"
_DEFLATED = b"\1"
_LEVEL = 1
_WORTH_TRYING_BYTES = 256


def pack(body: bytes) -> bytes:
    """Return the bytes as they are kept."""
    if len(body) >= _WORTH_TRYING_BYTES:
        deflated = zlib.compress(body, _LEVEL)
        if len(deflated) < len(body):
            return _DEFLATED + deflated
    return _PLAIN + body


def unpack(packed: bytes) -> bytes:
    """Return the bytes as they were given."""
    return zlib.decompress(packed[1:]) if packed[:1] == _DEFLATED else packed[1:]
