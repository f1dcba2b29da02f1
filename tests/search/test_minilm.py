import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from windowpane.search.embedding.minilm import MiniLM


@pytest.mark.spec("S1.35", "S1.48", "S1.65")
def test_texts_of_like_meaning_are_near_and_vectors_have_384_dimensions(minilm: MiniLM) -> None:
    cat, kitten, invoice = minilm.embed_now(["a cat sleeps", "the kitten is napping", "send the invoice by mail"])

    assert cat.shape == (384,)
    assert np.allclose(np.linalg.norm([cat, kitten, invoice], axis=1), 1, atol=1e-5)
    assert cat @ kitten > 0.5 > 0.3 > cat @ invoice


def test_a_vector_depends_on_its_text_alone(minilm: MiniLM) -> None:
    together = minilm.embed_now(["short", "a rather longer text about something else " * 20, "short"])

    assert (together[0] == together[2]).all()
    assert (together[0] == minilm.embed_now(["short"])[0]).all()


@pytest.mark.parametrize("text", ["", " ", "\0", "字" * 5000, "x" * 100_000, "\ud800"])
def test_any_text_has_a_vector(minilm: MiniLM, text: str) -> None:
    assert np.isfinite(minilm.embed_now([text])).all()


@pytest.mark.anyio
@pytest.mark.spec("S1.76")
async def test_one_model_serves_every_search(minilm: MiniLM) -> None:
    first = await minilm.embed(["hello"])
    second = await minilm.embed(["hello"])

    assert minilm.loaded
    assert (first == second).all()


def test_nothing_is_loaded_before_the_first_search(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "src"
    script = f"""
import sys
sys.path.insert(0, {str(source)!r})
from pathlib import Path
from windowpane.search.index import ItemIndex
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache
index = ItemIndex(MiniLM(Path({str(tmp_path)!r})), VectorCache(Path({str(tmp_path)!r})))
loaded = {{"onnxruntime", "tokenizers", "onnx", "torch"}} & sys.modules.keys()
assert not loaded, loaded
"""

    subprocess.run([sys.executable, "-c", script], check=True)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("weights_folder")
def test_the_runtime_reports_nothing_to_its_maker(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    source = Path(__file__).parents[2] / "src"
    script = f"""
import sys
sys.path.insert(0, {str(source)!r})
from pathlib import Path
from windowpane.search.embedding.minilm import MiniLM
MiniLM(Path({str(cache)!r})).embed_now(["hello"])
"""
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), str(home))
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"} | places

    subprocess.run([sys.executable, "-c", script], check=True, env=environment)

    # Before it reports anything, the runtime writes down an identifier of the device.
    assert list(home.rglob("*")) == []
