"""Write an ONNX model: a protobuf message, of which a graph of our own needs only a handful of fields.

The field numbers are those of `onnx.proto`. The package `onnx` would write the same bytes, and would have to be
installed everywhere for something that is done once; a test compares the two.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT = 1
INT64 = 7
"""Types of elements, as `TensorProto.DataType` numbers them."""

_ELEMENTS = {np.dtype(np.float32): FLOAT, np.dtype(np.int8): 3, np.dtype(np.int64): INT64}
_IR_VERSION = 9
_FLOAT_ATTRIBUTE = 1
_INT_ATTRIBUTE = 2


def model(
    name: str,
    nodes: Iterable[bytes],
    constants: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    opsets: Mapping[str, int],
) -> bytes:
    """Return a model as the bytes of its file. `opsets` are the versions of the operators' domains."""
    graph = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, name),
            *(_field(5, constant) for constant in constants),
            *(_field(11, value) for value in inputs),
            *(_field(12, value) for value in outputs),
        ]
    )
    versions = [_field(8, _field(1, domain) + _field(2, version)) for domain, version in opsets.items()]
    return b"".join([_field(1, _IR_VERSION), _field(2, "windowpane"), _field(7, graph), *versions])


def node(
    operator: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str,
    domain: str,
    attributes: Mapping[str, int | float],
) -> bytes:
    """Return one operation of a graph."""
    return b"".join(
        [
            *(_field(1, value) for value in inputs),
            *(_field(2, value) for value in outputs),
            _field(3, name),
            _field(4, operator),
            *(_field(5, _attribute(key, attributes[key])) for key in sorted(attributes)),
            _field(7, domain),
        ]
    )


def constant(name: str, value: NDArray[Any]) -> bytes:
    """Return a tensor that is part of the model."""
    dimensions = b"".join(_field(1, size) for size in value.shape)
    return dimensions + _field(2, _ELEMENTS[value.dtype]) + _field(8, name) + _field(9, value.tobytes())


def tensor(name: str, elements: int, shape: Sequence[int | str]) -> bytes:
    """Return the description of an input or an output; a name stands for a size that only a call knows."""
    sizes = b"".join(_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, elements) + _field(2, sizes)))


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, _INT_ATTRIBUTE)
    return _field(1, name) + _field(2, value) + _field(20, _FLOAT_ATTRIBUTE)


def _field(number: int, value: float | str | bytes) -> bytes:
    """Return one field of a message: its number and wire type, then its value."""
    match value:
        case int():
            return _varint(number << 3) + _varint(value)
        case float():
            return _varint(number << 3 | 5) + struct.pack("<f", value)
        case str() | bytes():
            content = value.encode() if isinstance(value, str) else value
            return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first; negative ones as 64-bit two's complement."""
    rest = value & (1 << 64) - 1
    groups = bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    groups.append(rest)
    return bytes(groups)
