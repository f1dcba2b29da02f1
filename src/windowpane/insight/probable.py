"""Tell which items an answer says the same as, in other words.

An item of which no words were found in the answer was probably used when the answer is very near to it in meaning: the
nearest passage of the one to the nearest passage of the other. Without an embedding model nothing can be said, and
the use of such an item stays unknown. This is asked after the reply, when a person looks or turns are counted.
"""

from collections.abc import Sequence
from dataclasses import replace

import anyio.to_thread

from windowpane.api.turns import ItemUse
from windowpane.insight.past import PastTurn
from windowpane.insight.use import reply_text, texts_sent, use
from windowpane.search.base import Nearness

NEAR = 0.46
"""From this cosine on an answer probably draws on an item. Chosen on half of the paraphrases (docs/lab-notes.md)."""

DEADLINE_S = 10.0
"""How long to wait for vectors: a model may have to be loaded first."""


async def judged(nearness: Nearness | None, past: PastTurn) -> tuple[ItemUse, ...]:
    """Return for every item that the model was given what can be told of its use, in the order of the record."""
    return await with_meaning(nearness, past, await anyio.to_thread.run_sync(use, past))


async def with_meaning(nearness: Nearness | None, past: PastTurn, found: Sequence[ItemUse]) -> tuple[ItemUse, ...]:
    """Return what words and calls have told of a turn's items, and where they told nothing, what meaning tells."""
    texts = {ref: text for ref, text in texts_sent(past).items() if text.strip()}
    asked = [each.ref for each in found if each.verdict == "unknown" and each.ref in texts]
    answer = reply_text(past)
    if nearness is None or not asked or not answer.strip():
        return tuple(found)
    measured = await nearness.nearest(answer, [texts[ref] for ref in asked], deadline_s=DEADLINE_S)
    cosines = dict(zip(asked, measured, strict=True))
    return tuple(_judged(each, cosines.get(each.ref)) for each in found)


def _judged(found: ItemUse, cosine: float | None) -> ItemUse:
    if cosine is None:
        return found
    return replace(found, verdict="probably" if cosine >= NEAR else "no_trace", nearness=cosine)
