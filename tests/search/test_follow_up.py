from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.items import reference_ref
from windowpane.search.base import Measurements, PassageFinder, SearchQuery
from windowpane.search.follow_up import goes_on, may_go_on, ties
from windowpane.search.select import calibrated

cosine = st.floats(-0.2, 1).map(lambda value: round(value, 4)) | st.just(np.nan)
columns = st.lists(st.tuples(cosine, cosine, st.floats(0, 0.95)), max_size=6)
mixed = st.builds(
    SearchQuery,
    st.sampled_from(("Who wrote Hamlet?", "and in winter?", "What is the price of it?", "tyres for the car")),
    context=st.just("Which tyres does my car need?"),
    context_share=st.sampled_from((0.1, 0.4, 0.7)),
    earlier=st.sampled_from(("Which tyres does my car need?", "Soup.")),
    named=st.sampled_from(((), ("Tyres",))),
)


@given(mixed, st.none() | st.floats(-0.2, 1), st.lists(columns, min_size=1, max_size=2))
def test_what_cannot_be_a_follow_up_is_never_found_to_be_one(
    asked: SearchQuery, nearness: float | None, domains: list[list[tuple[float, float, float]]]
) -> None:
    alone = [measured([(own, words) for own, _, words in rows]) for rows in domains]
    mixed_in = [measured([(other, words) for _, other, words in rows]) for rows in domains]
    together = [calibrated(found, asked.context_share) for found in mixed_in]

    tied = ties(asked)

    assert may_go_on(tied, nearness, alone) or not goes_on(tied, nearness, alone, together)


def measured(rows: Sequence[tuple[float, float]]) -> Measurements:
    meaning, words = (np.array([row[column] for row in rows], float) for column in (0, 1))
    keys = tuple(reference_ref(f"item-{number}") for number in range(len(rows)))
    order = np.arange(len(rows), dtype=np.intp)
    found = PassageFinder(((),) * len(rows), order, np.zeros(len(rows), np.float32))
    return Measurements("text", keys, meaning, words, order, found)
