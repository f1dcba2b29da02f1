"""The tokens that were missing are exact, end to end: with so many more an item is sent, with one less it is not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from calls.test_ledger import PROVIDERS
from windowpane.api.explanation import Explanation
from windowpane.context.items import Item, Reference, Rule, Tool
from windowpane.context.request import RequestContext
from windowpane.testing import World, drain, tool
from wire.reply import WireReply
from wire.server import running

TEXT = "The third shelf holds the blue boxes, and every box has a number on its left side. " * 12
PROVIDER = PROVIDERS["openai"]


@dataclass(frozen=True)
class Tried:
    """A turn with an item that was added by hand, in a window of some size."""

    context: RequestContext
    why: Explanation


async def tried(world: World, item: Item, window: int, most: int, reported: int) -> Tried:
    """Hold a short conversation, in which the provider counts in its own way, then add the item and go on."""
    world.write(
        "agent.yaml",
        f"model: {PROVIDER.model}\nworking_context: false\nfinders: false\ncontext_window: {window}\n"
        f"max_output_tokens: {most}\ncache: fresh\n",
    )
    answers = [PROVIDER.answer(WireReply((text,), input_tokens=reported)) for text in ("Hello.", "On the shelf.")]
    async with running(*answers) as server:
        world.environ = PROVIDER.environ(server.url)
        async with world.pane() as pane:
            session = (await pane.sessions.create()).id
            await drain(pane.turn(session, "Hello there."))
            await pane.sessions.add_item(session, item.ref)
            await drain(pane.turn(session, "Where is the blue box?"))
            return Tried(await pane.turns.context(session, 2), await pane.explain(session, 2, item.ref))


@pytest.mark.parametrize(
    "item",
    [Rule("shelf", TEXT), Reference("shelf", TEXT), Tool("shop", "shelf", TEXT, include="manual")],
    ids=["rule", "reference", "tool"],
)
@pytest.mark.parametrize(
    ("window", "most", "reported"),
    [(900, 100, 300), (450, 100, 120), (900, 4000, 300)],
    ids=["counts more", "counts less", "long replies"],
)
async def test_an_item_is_sent_with_the_tokens_that_were_missing_and_with_no_fewer(
    world: World, item: Item, window: int, most: int, reported: int
) -> None:
    world.rule("tone", "Be kind.", include="always")
    world.reference("desk", "The desk is at the window.", include="always")
    shelf = tool("shelf", "Empty.", description=TEXT, include="manual", permission="never")
    world.toolbox.put(
        "shop", [tool("count", "Three.", permission="never"), *([shelf] if isinstance(item, Tool) else [])]
    )
    if isinstance(item, Rule):
        world.rule("shelf", TEXT)
    elif isinstance(item, Reference):
        world.reference("shelf", TEXT)

    short = await tried(world, item, window, most, reported)
    (change,) = short.why.changes
    less = await tried(world, item, window + change.tokens - 1, most, reported)
    enough = await tried(world, item, window + change.tokens, most, reported)

    assert (short.why.fate, change.text) == ("over_budget", f"+{change.tokens} tokens")
    assert short.context.budget.token_factor != 1
    assert [each.why.included for each in (less, enough)] == [False, True]
    assert less.why.changes[0].text == "+1 tokens"
    grown = enough.context.budget.used_tokens - less.context.budget.used_tokens
    # An item is counted with the two line breaks before it. A tokenizer may join them with what stands around them.
    assert short.why.tokens is not None
    assert 0 <= short.why.tokens - grown <= (0 if isinstance(item, Tool) else 2)
