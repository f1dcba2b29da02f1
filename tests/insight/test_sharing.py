from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from insight.counted import PAPER, REFUND, ask, counted, talking
from windowpane.api.suggestions import SharedItem
from windowpane.context.items import reference_ref
from windowpane.errors import InvalidInputError
from windowpane.insight.analytics.sharing import similar, word_similarities
from windowpane.search.embedding.base import Vectors
from windowpane.search.history import HistoryIndex

BILLING, HIDDEN = reference_ref("billing"), reference_ref("hidden")


class Paraphrases:
    """Takes everything about money for the same, and everything else for something of its own."""

    model = "paraphrases"
    language = None

    async def vocabulary(self) -> dict[str, int]:
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        money = [any(word in text.lower() for word in ("refund", "money")) for text in texts]
        return np.array([[1.0, 0.0] if about else [0.0, 1.0] for about in money], np.float32)


@pytest.mark.spec("S0.95", "S0.96", "S0.97", "S1.109")
async def test_what_helped_with_a_similar_question_is_offered_with_its_turns(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        before = (await engine.sessions.create(owner="ana")).id
        await ask(engine, before)
        await engine.items.add(before, HIDDEN)
        await ask(engine, (await engine.sessions.create(owner="ana")).id, PAPER, "Photos are printed on matte paper.")
        now = (await engine.sessions.create(owner="ana")).id
        analytics = await counted(engine)
        found = await similar(engine, analytics, now, "How long does the refund usually take?")
        state = await engine.sessions.get(now)
        await engine.items.add(now, BILLING)
        then = await similar(engine, analytics, now, REFUND)
        await engine.items.add(now, HIDDEN)
        nothing = await similar(engine, analytics, now, REFUND)

    (combination,) = found.combinations
    assert found.looked_at == 2
    assert combination.items == (
        SharedItem(ref=BILLING, description="", held=False, added=False),
        SharedItem(ref=HIDDEN, description="", held=False, added=True),
    )
    assert [(turn.session_id, turn.turn, turn.message) for turn in combination.turns] == [(before, 1, REFUND)]
    assert combination.times == 1
    assert 0.6 <= combination.similarity < 1
    assert not state.holds(BILLING)
    assert [item.held for item in then.combinations[0].items] == [True, False]
    assert then.combinations[0].similarity == 1
    assert nothing.combinations == ()


@pytest.mark.spec("S0.95", "S1.109")
async def test_questions_that_share_no_word_are_similar_by_meaning(tmp_path: Path) -> None:
    message = "When do I get my money back?"
    for history, offered in ((HistoryIndex(Paraphrases()), 1), (None, 0)):
        async with talking(tmp_path / f"agents{offered}", history=history) as engine:
            await ask(engine, (await engine.sessions.create(owner="ana")).id)
            now = (await engine.sessions.create(owner="ana")).id
            found = await similar(engine, await counted(engine), now, message)

        assert len(found.combinations) == offered


async def test_nothing_of_others_of_other_agents_or_of_what_is_gone_is_offered(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        others = (await engine.sessions.create(owner="ben")).id
        await ask(engine, others)
        deleted, cleared = [(await engine.sessions.create(owner="ana")).id for _ in range(2)]
        await ask(engine, deleted)
        await ask(engine, cleared)
        now = (await engine.sessions.create(owner="ana")).id
        analytics = await counted(engine)
        before = await similar(engine, analytics, now, REFUND)
        await engine.sessions.delete(deleted)
        await engine.conversations.clear(cleared)
        after = await similar(engine, analytics, now, REFUND)
        with pytest.raises(InvalidInputError):
            await similar(engine, analytics, now, " ")

    assert [combination.times for combination in before.combinations] == [2]
    assert (after.looked_at, after.combinations) == (0, ())


async def test_an_item_that_the_agent_no_longer_has_is_not_offered(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        await ask(engine, (await engine.sessions.create(owner="ana")).id)
        analytics = await counted(engine)
        (tmp_path / "agents/pane/references/billing.md").unlink()
        found = await similar(engine, analytics, (await engine.sessions.create(owner="ana")).id, REFUND)

    assert (found.looked_at, found.combinations) == (1, ())


def test_rare_words_in_common_count_more_than_frequent_ones() -> None:
    texts = ["reset the router password", "reset the printer", "reset the oven", "reset the clock"]

    password, printer, *_ = word_similarities("How do I reset my password?", texts)

    assert word_similarities("reset the oven", texts)[2] == 1
    assert password > printer > 0
    assert word_similarities("", texts) == [0, 0, 0, 0]
    assert word_similarities("reset", []) == []
