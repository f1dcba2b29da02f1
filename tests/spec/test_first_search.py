"""What the first search costs, and that nothing of it is paid before it or again. Seen from a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spec.place import environment

SCRIPT = Path(__file__).parent / "fresh_process.py"


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each step of the fresh process took."""
    data = tmp_path_factory.mktemp("fresh")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(data)], env=environment(data), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cost(steps: dict[str, Any], step: str) -> float:
    return steps[step]["cpu_s"]


@pytest.mark.spec("S1.51", "S1.58")
def test_who_opens_an_agent_and_talks_to_it_without_a_search_loads_no_model_and_embeds_nothing(
    steps: dict[str, Any],
) -> None:
    assert (steps["talk"]["loaded"], steps["talk"]["cached"]) == ([], [])


@pytest.mark.spec("S1.41", "S1.75")
def test_the_first_search_loads_the_model_and_keeps_the_vectors(steps: dict[str, Any]) -> None:
    assert {"onnxruntime", "tokenizers"} <= set(steps["first search"]["loaded"])
    assert {"model", "vectors"} <= set(steps["first search"]["cached"])


@pytest.mark.spec("S1.60")
def test_the_model_is_loaded_once(steps: dict[str, Any]) -> None:
    assert cost(steps, "first search") > 4 * cost(steps, "search 1")


@pytest.mark.spec("S1.61")
def test_each_item_costs_the_same_to_index_however_many_there_are(steps: dict[str, Any]) -> None:
    ten, hundred = (cost(steps, f"index {count}") - cost(steps, "search 111") for count in (10, 100))

    assert hundred < 3 * 10 * ten


@pytest.mark.spec("S1.62")
def test_a_hundred_items_are_searched_in_little_more_than_the_time_of_one(steps: dict[str, Any]) -> None:
    assert cost(steps, "search 111") < 10 * cost(steps, "search 1")


@pytest.mark.spec("S1.63")
def test_the_first_search_among_a_hundred_items_costs_many_times_what_later_ones_do(steps: dict[str, Any]) -> None:
    assert cost(steps, "index 100") > 8 * cost(steps, "search 111")
