"""What a body may hold so that every program can read it back."""

from __future__ import annotations

import json
import math
from typing import Any, cast

from hypothesis import example, given
from hypothesis import strategies as st

from windowpane.server.json_numbers import check_storable

LARGEST = int(1.7976931348623157e308)
NUMBERS = st.integers() | st.integers(-(10**320), 10**320) | st.floats()
TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=5) | st.integers(10**310, 10**312).map(str)
BODIES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def _kept(value: Any) -> bool:
    """Tell whether a program that has doubles and whole characters reads the same back."""
    if isinstance(value, dict):
        return all(_kept(name) and _kept(inner) for name, inner in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return all(map(_kept, cast("list[Any]", value)))
    if isinstance(value, str):
        return value == value.encode(errors="replace").decode()
    return isinstance(value, bool) or not isinstance(value, int | float) or math.isfinite(float(str(value)))


@given(BODIES)
@example([LARGEST, -LARGEST])
@example([LARGEST * 10])
@example({"a": -(10**309)})
@example({"\ud800": 1})
@example(["9" * 400])
@example([float("nan")])
def test_what_is_taken_is_what_every_program_reads_back(body: object) -> None:
    try:
        check_storable(body)
        taken = True
    except ValueError:
        taken = False

    assert taken == _kept(body), json.dumps(body)
