from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.talk import AT, assistant, talk, user
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, Message, SystemMessage, UserMessage
from windowpane.context.request import Evidence
from windowpane.memory.recall import (
    ASKED_BACK_FLOOR,
    FLOOR,
    Read,
    Recollection,
    choose,
    floor_for,
    recall,
    spoken_tokens,
)
from windowpane.memory.recent import recent_messages, text_of
from windowpane.search.base import SearchQuery
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.embedding.weights import PACKAGE
from windowpane.search.history import HistoryIndex, HistoryResult, Past
from windowpane.text.blocks import recall_block
from windowpane.text.tokens import count

pytestmark = pytest.mark.anyio

SESSION = SessionId("ses_one")
NO_EMBEDDER = "recall by keywords only: no embedding model is configured"
PARROT = talk(
    "My parrot Kiwi eats only sunflower seeds.",
    "Kiwi sounds like a parrot with taste.",
    "Now help me with the report.",
    "Gladly. What is it about?",
    "Sales in spring.",
    "Start with the totals.",
    "Done. And then?",
    "Compare them with autumn.",
)


def reading(messages: Sequence[Message], asked: list[int] | None = None) -> Read:
    async def read(after_seq: int) -> Sequence[Message]:
        if asked is not None:
            asked.append(after_seq)
        return [message for message in messages if message.seq > after_seq]

    return read


async def ask(
    index: HistoryIndex, question: str, messages: Sequence[Message], shown: int = 2, budget_tokens: int = 1000
) -> Recollection:
    return await recall(
        index,
        SESSION,
        question,
        read=reading(messages),
        message_count=len(messages),
        recent=recent_messages(messages, None)[-shown:],
        budget_tokens=budget_tokens,
        deadline_s=60,
    )


def measured(messages: Sequence[Message], question: str) -> HistoryResult:
    past = Past("m")
    past.add(messages)
    return past.measure(SearchQuery(question), None, past.count_before(None))


async def test_what_bears_on_the_question_is_recalled_with_its_neighbours() -> None:
    found = await ask(HistoryIndex(None), "What does my parrot Kiwi eat?", PARROT, budget_tokens=36)

    assert len(found.recalled) == 1
    assert found.recalled[0].messages == PARROT[:2]
    assert found.recalled[0].reason == "message 1 is relevant to the question, with 1 around it"
    assert found.degraded == (NO_EMBEDDER,)


async def test_a_recalled_group_is_a_part_of_the_request_with_its_evidence() -> None:
    found = await ask(HistoryIndex(None), "What does my parrot Kiwi eat?", PARROT, budget_tokens=36)

    block = recall_block(found.recalled[0], 1)
    assert block.name == "messages 1 to 2"
    assert block.text == (
        "Earlier in this conversation:\n"
        "USER: My parrot Kiwi eats only sunflower seeds.\n"
        "ASSISTANT: Kiwi sounds like a parrot with taste."
    )
    assert block.evidence is not None
    assert block.evidence == Evidence(
        score=block.evidence.score, meaning=None, words=block.evidence.words, rank=1, floor=FLOOR
    )
    assert FLOOR <= block.evidence.score <= 1
    assert 0 < (block.evidence.words or 0) < 1


async def test_where_nothing_is_near_nothing_is_recalled() -> None:
    found = await ask(HistoryIndex(None), "How tall is the Eiffel tower in Paris?", PARROT)

    assert found == Recollection((), (NO_EMBEDDER,))


@pytest.mark.parametrize("question", ["Thanks, that's all!", "hello"])
async def test_small_talk_recalls_nothing(question: str) -> None:
    assert await ask(HistoryIndex(None), question, PARROT) == Recollection()


async def test_what_is_in_the_window_anyway_is_not_recalled() -> None:
    found = await ask(HistoryIndex(None), "What does my parrot Kiwi eat?", PARROT, shown=8)

    assert found == Recollection()


async def test_only_messages_that_the_index_does_not_hold_are_read() -> None:
    index = HistoryIndex(None)
    note = SystemMessage(content="note", seq=9, at=AT)
    messages: list[Message] = [*PARROT, note]
    asked: list[int] = []
    for said in (PARROT, (*messages, user(10, "Go on."), assistant(11, "Right."))):
        await recall(
            index,
            SESSION,
            "parrot?",
            read=reading(said, asked),
            message_count=len(said),
            recent=recent_messages(said, None)[-2:],
        )

    assert asked == [0, 8]


async def test_a_conversation_that_was_cleared_elsewhere_is_read_from_its_beginning() -> None:
    index = HistoryIndex(None)
    await ask(index, "What does my parrot Kiwi eat?", PARROT)
    after = talk("My cat Tom eats fish.", "Nice.", "Tell me a joke.", "No.", first_seq=20)

    found = await ask(index, "What does my cat Tom eat?", after)
    gone = await ask(index, "What does my parrot Kiwi eat sunflower seeds?", after)

    assert found.recalled[0].messages == after[:2]
    assert all("Kiwi" not in str(group.messages) for group in gone.recalled)


async def test_of_a_long_message_only_a_part_is_recalled() -> None:
    long = assistant(2, "\n\n".join(f"Paragraph {number} speaks of walruses at length. " * 8 for number in range(30)))
    messages = (user(1, "Tell me about walruses."), long, *talk("Thank you.", "Welcome.", first_seq=3))

    found = await ask(HistoryIndex(None), "What about walruses?", messages)

    recalled = next(m for group in found.recalled for m in group.messages if isinstance(m, AssistantMessage))
    assert text_of(recalled).endswith(" […]")
    assert text_of(long).startswith(text_of(recalled).removesuffix(" […]"))
    assert count(text_of(recalled)) < 300


@pytest.mark.parametrize(
    ("question", "floor"),
    [
        ("Remind me what the port was.", ASKED_BACK_FLOOR),
        ("Which port did we choose?", ASKED_BACK_FLOOR),
        ("You said something about tyres.", ASKED_BACK_FLOOR),
        ("Which port does Redis use?", FLOOR),
    ],
)
def test_a_question_about_the_past_needs_less_evidence(question: str, floor: float) -> None:
    assert floor_for(question) == floor


@given(
    st.lists(
        st.lists(st.sampled_from(["parrot", "kiwi", "eats", "seeds", "report", "x" * 200]), max_size=40).map(" ".join)
    ),
    st.integers(0, 300),
)
def test_what_is_recalled_fits_the_budget_and_repeats_nothing(texts: list[str], budget_tokens: int) -> None:
    result = measured(talk(*texts), "parrot eats seeds")

    groups = choose(result, budget_tokens, floor=0.0)

    seqs_ = [message.seq for group in groups for message in group.messages]
    cost = sum(spoken_tokens(m) for g in groups for m in g.messages if isinstance(m, UserMessage | AssistantMessage))
    assert cost <= budget_tokens
    assert len(seqs_) == len(set(seqs_))
    assert all(list(range(g.messages[0].seq, g.messages[-1].seq + 1)) == [m.seq for m in g.messages] for g in groups)
    assert [group.evidence.rank for group in groups] == list(range(1, len(groups) + 1))
    assert all(0 <= group.evidence.score <= 1 for group in groups)
    assert groups == choose(result, budget_tokens, floor=0.0)


def test_groups_come_back_best_first() -> None:
    far = talk(*("nothing of interest here" for _ in range(10)), first_seq=3)
    messages = (*talk("We saw a parrot.", "Where?"), *far, *talk("The parrot Kiwi eats seeds.", "Ah.", first_seq=13))

    groups = choose(measured(messages, "What does the parrot Kiwi eat?"))

    best, second = ([message.seq for message in group.messages] for group in groups)
    assert 13 in best
    assert 1 in second
    assert groups[0].evidence.score > groups[1].evidence.score


async def test_a_message_is_recalled_by_meaning_where_it_shares_no_word(tmp_path: Path) -> None:
    if find_spec(PACKAGE) is None:
        pytest.skip("the weights are not installed; `make weights` installs them")
    index = HistoryIndex(MiniLM(tmp_path), VectorCache(tmp_path))

    found = await ask(index, "Remind me, which food does the bird like?", PARROT, budget_tokens=60)

    assert PARROT[0] in found.recalled[0].messages
    assert found.recalled[0].evidence.meaning is not None
    assert not np.isnan(found.recalled[0].evidence.meaning)
    assert found.degraded == ()
