from __future__ import annotations

import json
from pathlib import Path

import pytest

from insight.counted import REFUND, ask, counted, desk
from insight.turns import Scene, played
from windowpane.api.analytics import Filters
from windowpane.context.items import Reference, Tool, reference_ref
from windowpane.context.messages import Step
from windowpane.insight.analytics.report import dashboard
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.insight.past import PastTurn
from windowpane.insight.probable import judged
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.index import ItemIndex

PARAPHRASES = Path(__file__).parents[2] / "bench" / "data" / "paraphrases.jsonl"
UNSEEN = [json.loads(line) for line in PARAPHRASES.read_text(encoding="utf-8").splitlines()][6:]
"""The half that the threshold was not chosen on."""

IN_OTHER_WORDS = "You get your money back within about a week, paid straight to where you bank."


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ItemIndex:
    folder = tmp_path_factory.mktemp("cache")
    return ItemIndex(MiniLM(folder / "model"), VectorCache(folder / "vectors"))


def answered(message: str, answer: str, *items: Reference | Tool) -> PastTurn:
    return played(Scene(items=items, message=message, steps=(Step(text=answer),)))


async def test_what_an_answer_says_in_other_words_was_probably_used(index: ItemIndex) -> None:
    right: list[bool] = []
    wrong: list[bool] = []
    for row in UNSEEN:
        references = [Reference(item["name"], item["text"], include="always") for item in row["items"]]
        for own in row["items"]:
            for found in await judged(index, answered(row["question"], own["answer"], *references)):
                (right if found.ref.name == own["name"] else wrong).append(found.verdict == "probably")
        general = await judged(index, answered(row["question"], row["general"], *references))
        wrong += [found.verdict == "probably" for found in general]

    assert (len(right), len(wrong)) == (12, 24)
    assert sum(right) >= 9
    assert sum(wrong) <= 2


async def test_without_an_embedding_model_use_that_leaves_no_words_is_unknown() -> None:
    billing = Reference("billing", "A refund reaches the bank account after five working days.", include="always")
    past = answered(REFUND, IN_OTHER_WORDS, billing, Tool("bank", "pay", "Pays a bill."))

    verdicts = [[found.verdict for found in await judged(near, past)] for near in (None, ItemIndex(None))]

    assert verdicts == [["unknown", "not_called"]] * 2


async def test_nothing_is_measured_where_words_tell(index: ItemIndex) -> None:
    billing = Reference("billing", "A refund reaches the bank account after five working days.", include="always")
    past = answered(REFUND, "It reaches the bank account after five working days.", billing)

    (found,) = await judged(index, past)

    assert (found.verdict, found.how, found.nearness) == ("used", "quoted", None)


async def test_turns_are_counted_with_what_was_probably_used(tmp_path: Path, index: ItemIndex) -> None:
    async with desk(tmp_path / "agents").engine(nearness=index) as engine:
        session = await engine.sessions.create()
        await ask(engine, session.id, REFUND, IN_OTHER_WORDS)
        analytics = AnalyticsStore()
        kept = await AnalyticsUpdater(engine.store, analytics, engine.nearness).update(within_s=None)
        by_words = await counted(engine)

    found = dashboard(analytics, Filters(), kept)
    items = {row.ref.name: row for row in found.items}
    billing, tone = items["billing"], items["tone"]
    assert (billing.used, billing.probably, billing.used_share, billing.no_trace) == (0, 1, 1.0, 0)
    assert (tone.probably, tone.no_trace, tone.no_trace_tokens, tone.unused_tokens) == (0, 1, tone.tokens, 0)
    assert (found.quality.selected_used, found.quality.selected_probably, found.quality.precision) == (0, 1, 1.0)
    unknown = {row.ref: row for row in dashboard(by_words, Filters(), kept).items}[reference_ref("billing")]
    assert (unknown.used, unknown.probably, unknown.no_trace, unknown.no_trace_tokens) == (0, 0, 0, 0)
