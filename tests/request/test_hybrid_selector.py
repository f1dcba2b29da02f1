from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from windowpane.context.items import Item, Reference, Rule, Tool
from windowpane.context.messages import AssistantMessage, Message, ModelReply, Step, UserMessage
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.base import Vectors
from windowpane.search.index import ItemIndex

AT = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = UserMessage(content="How are photos uploaded?", seq=2, at=AT)
ANSWER = AssistantMessage(model_reply=ModelReply(steps=(Step(text="Press Upload."),)), seq=4, at=AT)
REFERENCES = (
    Reference(
        name="sizes",
        title="Photo Resizing Guide",
        description="Widths and heights",
        text="Choose a width.",
    ),
    Reference(name="sharing", title="Sharing Albums", description="Links for friends", text="Send a link."),
)


@pytest.mark.spec("S3.43", "S3.68")
async def test_a_follow_up_on_a_related_document_brings_that_document_nearer() -> None:
    related = replace(ANSWER, related=("Photo Resizing Guide", "Sharing Albums"))

    plain = await scores(ASKED, ANSWER)
    known = await scores(ASKED, related)

    assert known["sizes"] > plain["sizes"]
    assert known["sharing"] <= plain["sharing"]


async def scores(*recent: Message) -> dict[str, float]:
    selection = await HybridSelector(ItemIndex(None)).select("What about resizing?", recent, REFERENCES, {})
    chosen = {one.item.name: one.evidence.score for one in selection.chosen if one.evidence}
    return chosen | {one.name: one.evidence.score for one in selection.left_out if one.evidence}


class CountingTexts:
    """An embedder to which every text is as far from the others as can be; it remembers what it was asked."""

    model, language = "counting", None

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def vocabulary(self) -> Mapping[str, int]:
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), 64), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[len(self.texts)] = 1
            self.texts.append(text)
        return rows


async def test_a_message_that_cannot_be_a_follow_up_is_not_embedded_with_the_turn_before_it() -> None:
    embedder = CountingTexts()
    selector = HybridSelector(ItemIndex(embedder))

    await selector.select("Who wrote Hamlet, Macbeth and King Lear?", (ASKED, ANSWER), REFERENCES, {})
    by_itself = list(embedder.texts)
    await selector.select("What about the resizing of it?", (ASKED, ANSWER), REFERENCES, {})

    context = "How are photos uploaded?\nPress Upload.\n"
    assert [text for text in by_itself if text.startswith(context)] == []
    assert [text for text in embedder.texts if text.startswith(context)] == [f"{context}What about the resizing of it?"]


async def test_what_is_left_out_stands_in_one_order_whatever_kind_it_is() -> None:
    items: list[Item] = [Tool("photos", name, f"Do {name}") for name in ("upload_photo", "crop", "mail")]
    items += [Rule(name=name, text=f"About {name}.") for name in ("zoom", "photo-sizes", "mail")]

    selection = await HybridSelector(ItemIndex(None)).select("upload a photo", (), items, {"floor": 1, "top_k": 1})

    left = [(one.evidence.score if one.evidence else -1.0, one.ref) for one in selection.left_out]
    assert selection.chosen == ()
    assert {ref for _, ref in left} == {item.ref for item in items}
    assert left == sorted(left, key=lambda pair: (-pair[0], pair[1].sort_key))
    assert [one.ref.type for one in selection.left_out if one.evidence and one.evidence.passage] == ["tool", "rule"]
    assert [one.ref.type for one in selection.left_out if one.evidence and one.evidence.rank == 1] == ["tool", "rule"]
