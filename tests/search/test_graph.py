from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from windowpane.search.embedding.weights import find_weights


@pytest.mark.usefixtures("weights_folder")
def test_the_graph_is_a_model_that_the_onnx_package_checks_and_would_write_the_same_way(tmp_path: Path) -> None:
    written = find_weights(None, tmp_path).graph.read_bytes()

    read = onnx.load_model_from_string(written)

    onnx.checker.check_model(read, full_check=True)  # pyright: ignore[reportUnknownMemberType] (an untyped path)
    assert read.SerializeToString(deterministic=True) == written
