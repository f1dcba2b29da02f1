"""Build the ONNX graph of all-MiniLM-L6-v2 from its published weights.

The graph is made for one processor and one text at a time: matrices in eight bits,
the operators that ONNX Runtime is fastest at, and pooling and normalisation inside, so that what comes
out is the vector itself. Run on one text at a time nothing is padded or masked, and a vector
depends on its text alone: eight-bit arithmetic scales by the largest number in a batch,
so in a batch every text would change its neighbours a little.

`bench/selection_speed.py` compares it with the usual export: less than half the time
for each passage, and the same ranking.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windowpane.search.embedding import onnx_model
from windowpane.search.embedding.onnx_model import FLOAT, INT64
from windowpane.search.embedding.safetensors import read_tensors

LAYERS = 6
HEADS = 12
DIMENSIONS = 384

Array = NDArray[Any]

# Seven of the eight bits: processors without VNNI add pairs of products in sixteen bits and would overflow.
_WEIGHT_LEVELS = 63
_TOKEN_LEVELS = 127
_EPSILON = 1e-12


def build_graph(safetensors: Path, target: Path) -> None:
    """Write the graph for a file of weights.

    Raises:
        KeyError: the file holds another model.
    """
    graph = _Graph(read_tensors(safetensors))
    hidden = graph.tokens()
    for layer in range(LAYERS):
        hidden = graph.layer(layer, hidden)
    graph.pooled(hidden, "embedding")
    target.write_bytes(graph.model("embedding"))


class _Graph:
    """Nodes and constants in the making."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self._weights = weights
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def add(self, operator: str, inputs: list[str], output: str, domain: str = "", **attributes: float) -> str:
        """Add one node and return the name of its output."""
        self._nodes.append(onnx_model.node(operator, inputs, [output], output, domain, attributes))
        return output

    def fused(self, operator: str, inputs: list[str], output: str, **attributes: float) -> str:
        """Add one of ONNX Runtime's own operators."""
        return self.add(operator, inputs, output, "com.microsoft", **attributes)

    def constant(self, name: str, value: Array) -> str:
        """Add a constant and return its name."""
        self._constants.append(onnx_model.constant(name, value))
        return name

    def linear(self, name: str, source: str, weights: Array, bias: Array) -> str:
        """Multiply by a matrix of [inputs, outputs], in eight bits with a scale for each output, and add a bias."""
        scale = np.abs(weights).max(axis=0) / _WEIGHT_LEVELS
        matrix = self.constant(f"{name}.weight", np.rint(weights / scale).astype(np.int8))
        scales = self.constant(f"{name}.scale", scale.astype(np.float32))
        added = self.constant(f"{name}.bias", bias)
        return self.fused("DynamicQuantizeMatMul", [source, matrix, scales, "", added], name)

    def normal(self, name: str, source: str, weights: str) -> str:
        """Bring every token to the same mean and spread, then scale and shift it by weights."""
        parts = [self.constant(f"{name}.{part}", self._weights[f"{weights}.{part}"]) for part in ("weight", "bias")]
        return self.add("LayerNormalization", [source, *parts], name, epsilon=_EPSILON)

    def tokens(self) -> str:
        """Look up words and positions."""
        table = self._weights["embeddings.word_embeddings.weight"]
        scale = np.maximum(np.abs(table).max(axis=1, keepdims=True), _EPSILON) / _TOKEN_LEVELS
        self.constant("table", np.rint(table / scale).astype(np.int8))
        self.constant("table.scale", scale.astype(np.float32))
        for name, value in (("0", 0), ("1", 1), ("2", 2), ("-1", -1)):
            self.constant(name, np.array([value], np.int64))
        self.add("Gather", ["table", "input_ids"], "rows")
        self.add("Cast", ["rows"], "rows.float", to=FLOAT)
        self.add("Gather", ["table.scale", "input_ids"], "rows.scale")
        self.add("Mul", ["rows.float", "rows.scale"], "words")
        self.add("Shape", ["input_ids"], "shape")
        self.add("Slice", ["shape", "1", "2", "0"], "length")
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        self.constant("positions.all", self._weights["embeddings.position_embeddings.weight"] + kind)
        self.add("Slice", ["positions.all", "0", "length", "0"], "positions")
        self.add("Add", ["words", "positions"], "sum")
        return self.normal("embedded", "sum", "embeddings.LayerNorm")

    def layer(self, number: int, hidden: str) -> str:
        """Add one layer of attention and feed-forward."""
        prefix = f"encoder.layer.{number}."

        def dense(name: str, source: str, *parts: str) -> str:
            """Multiply by the matrices of some parts of the layer at once."""
            matrix = np.concatenate([self._weights[f"{prefix}{part}.weight"].T for part in parts], axis=1)
            bias = np.concatenate([self._weights[f"{prefix}{part}.bias"] for part in parts])
            return self.linear(f"{number}.{name}", source, matrix, bias)

        def added(name: str, old: str, new: str, part: str) -> str:
            # Not SkipLayerNormalization, which does all of this at once and is not vectorised: six times the time.
            together = self.add("Add", [old, new], f"{number}.{name}.sum")
            return self.normal(f"{number}.{name}", together, f"{prefix}{part}.LayerNorm")

        kinds = [f"attention.self.{kind}" for kind in ("query", "key", "value")]
        parts = [f"{number}.{kind}" for kind in kinds]
        split = {"axis": 2, "num_outputs": 3}
        together = dense("qkv", hidden, *kinds)
        self._nodes.append(onnx_model.node("Split", [together], parts, f"{number}.split", "", split))
        attended = self.fused("MultiHeadAttention", parts, f"{number}.attended", num_heads=HEADS)
        hidden = added("between", hidden, dense("projected", attended, "attention.output.dense"), "attention.output")
        wide = self.fused("Gelu", [dense("wide", hidden, "intermediate.dense")], f"{number}.gelu")
        return added("out", hidden, dense("narrow", wide, "output.dense"), "output")

    def pooled(self, hidden: str, output: str) -> None:
        """Average over the tokens of the text and bring the result to length 1."""
        self.add("ReduceSum", [hidden, "1"], "summed", keepdims=0)
        self.add("LpNormalization", ["summed"], output, axis=-1, p=2)

    def model(self, output: str) -> bytes:
        """Return everything as one model."""
        inputs = [onnx_model.tensor("input_ids", INT64, ["texts", "tokens"])]
        outputs = [onnx_model.tensor(output, FLOAT, ["texts", DIMENSIONS])]
        opsets = {"": 18, "com.microsoft": 1}
        return onnx_model.model("all-MiniLM-L6-v2", self._nodes, self._constants, inputs, outputs, opsets)
