"""Read a file of weights in the safetensors format.

The file is the length of a header, the header in JSON, and the numbers of all tensors one after the other.
"""

import json
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

_NUMBERS = {"F32": "<f4", "I64": "<i8"}


class _Header(TypedDict):
    dtype: str
    shape: list[int]
    data_offsets: list[int]


def read_tensors(file: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors by their names; each is read from disk when it is used.

    Raises:
        KeyError: a tensor has another kind of number than the published weights.
    """
    content = np.memmap(file, np.uint8, "r")
    start = 8 + int(content[:8].view("<u8")[0])
    headers = cast("dict[str, _Header]", json.loads(content[8:start].tobytes()))
    numbers = content[start:]
    return {
        name: numbers[slice(*header["data_offsets"])].view(_NUMBERS[header["dtype"]]).reshape(header["shape"])
        for name, header in headers.items()
        if name != "__metadata__"
    }
