"""Count tokens as the model `local` does, with the vocabulary that stands in the file of its weights.

Only the head of the file is read, which takes a fraction of a second, and no weight is loaded: llama.cpp, which counts
the same, stays in its own process.
"""

import mmap
import struct
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from windowpane.context.request import RequestMessage
from windowpane.models.local.server import weights


def local_tokens(messages: Iterable[RequestMessage]) -> int:
    """Return how many tokens messages are to the model `local`, with the frame that its template puts around them.

    Tools are not among them: the template does not show them to the model.

    Raises:
        FileNotFoundError: its weights are not installed.
    """
    framed = (f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n" for message in messages)
    return len(_tokenizer(weights()).encode("".join(framed) + "<|im_start|>assistant\n").ids)


@lru_cache(maxsize=1)
def _tokenizer(path: Path) -> Any:
    # Late: the library takes a moment to load, and most processes never count for this model.
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    head = read_head(path)
    tokens, kinds = head["tokenizer.ggml.tokens"], head["tokenizer.ggml.token_type"]
    pairs = [tuple(pair.split(" ", 1)) for pair in head["tokenizer.ggml.merges"]]
    tokenizer: Any = Tokenizer(BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=pairs))
    tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    control = [AddedToken(token, special=True) for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens(control)
    return tokenizer


_CONTROL = 3
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


def read_head(path: Path) -> dict[str, Any]:
    """Return what a GGUF file tells about its model, without its weights.

    Raises:
        ValueError: it is not a GGUF file.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:4] != b"GGUF":
            raise ValueError(f"{path.name} is not a GGUF file")
        reading = _Reading(data)
        _, _, entries = reading.numbers("IQQ")
        return {reading.text(): reading.value(*reading.numbers("I")) for _ in range(entries)}


class _Reading:
    """A place in the head of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 4

    def numbers(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def text(self) -> str:
        (length,) = self.numbers("Q")
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.numbers(_NUMBERS[kind])[0]
        inner, length = self.numbers("IQ")
        if inner in _NUMBERS:
            return self.numbers(f"{length}{_NUMBERS[inner]}")
        return [self.value(inner) for _ in range(length)]
