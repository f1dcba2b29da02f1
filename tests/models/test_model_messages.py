"""Our messages in pydantic-ai's words: laws that hold for every request."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from models.talking import message
from windowpane.context.messages import ToolCall
from windowpane.context.request import RequestMessage
from windowpane.models.messages import REMEMBERED_REPLIES, Replies, WireForm, conversation, own_words

visible = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: bool(text.strip()))


@st.composite
def requests(draw: st.DrawFn) -> list[RequestMessage]:
    """Draw a request in the one prompt order, with any number of finished tool steps."""
    found = [message("system", text) for text in draw(st.lists(visible, max_size=3))]
    number = 0
    for _ in range(draw(st.integers(0, 3))):
        found += [message("user", text) for text in draw(st.lists(visible, min_size=1, max_size=2))]
        for _ in range(draw(st.integers(0, 2))):
            calls = [ToolCall(f"call_{number + n}", "tool", "{}") for n in range(draw(st.integers(1, 3)))]
            number += len(calls)
            found.append(message("assistant", draw(visible), *calls))
            found += [message("tool", draw(visible), call_id=call.id) for call in calls]
        found.append(message("assistant", draw(visible)))
    return [*found, message("user", draw(visible))]


@given(requests())
def test_order_roles_and_text_survive_and_all_system_messages_are_one(messages: list[RequestMessage]) -> None:
    system = [sent.content for sent in messages if sent.role == "system"]
    assert list(_flat(conversation(messages, Replies()))) == [
        *([("system", "\n\n".join(system), None)] if system else []),
        *(
            entry
            for sent in messages
            if sent.role != "system"
            for entry in (
                (sent.role, sent.content, sent.tool_call_id),
                *(("call", call.arguments, call.id) for call in sent.tool_calls),
            )
        ),
    ]


@given(requests())
def test_joined_user_messages_alternate_with_replies_and_lose_nothing(messages: list[RequestMessage]) -> None:
    flat = list(_flat(conversation(messages, Replies(), WireForm(joined=True))))

    said = [(role, text) for role, text, _ in flat if role in ("user", "assistant", "tool")]
    assert not any(before[0] == after[0] == "user" for before, after in pairwise(said))
    assert said[-1][0] == "user"
    assert said[-1][1].endswith(messages[-1].content)
    users = "\n\n".join(text for role, text in said if role == "user")
    assert users == "\n\n".join(sent.content for sent in messages if sent.role == "user")


@given(requests())
def test_requests_and_replies_alternate_so_that_nothing_stands_between_a_call_and_its_result(
    messages: list[RequestMessage],
) -> None:
    sent = conversation(messages, Replies())

    for reply, following in pairwise(sent):
        calls = [part.tool_call_id for part in reply.parts if isinstance(part, ToolCallPart)]
        results = [part.tool_call_id for part in following.parts[: len(calls)] if isinstance(part, ToolReturnPart)]
        assert type(reply) is not type(following)
        assert results == calls


def test_a_remembered_reply_stands_in_only_for_what_it_said() -> None:
    replies = Replies()
    reply = ModelResponse(parts=[TextPart("Look."), ToolCallPart("read", '{"a": 1}', "call_1")])
    replies.remember("Look.", reply)

    assert replies.behind(message("assistant", "Look.", ToolCall("call_1", "read", '{"a": 1}'))) is reply
    assert replies.behind(message("assistant", "Look!", ToolCall("call_1", "read", '{"a": 1}'))) is None
    assert replies.behind(message("assistant", "Look.", ToolCall("call_1", "read", '{"a": 2}'))) is None
    assert replies.behind(message("assistant", "Look.")) is None


def test_a_stored_reply_that_cannot_be_read_is_as_good_as_forgotten() -> None:
    replies = Replies()
    for stored in ("", "{", '{"parts": 7}', "[" * 10_000):
        replies.restore("Look.", stored)

    assert replies.behind(message("assistant", "Look.", ToolCall("call_1", "read", "{}"))) is None


def test_only_a_reply_that_a_step_cannot_repeat_is_stored_in_its_own_words() -> None:
    call = ToolCallPart("read", "{}", "call_1")
    thought = ThinkingPart("Hm.", signature="s", provider_name="anthropic")

    assert own_words(ModelResponse(parts=[TextPart("Look."), call])) == ""
    assert own_words(ModelResponse(parts=[thought, TextPart("Done.")])) == ""
    assert '"signature":"s"' in own_words(ModelResponse(parts=[thought, call]))


def test_old_replies_are_forgotten() -> None:
    replies = Replies()
    for number in range(REMEMBERED_REPLIES + 1):
        replies.remember("", ModelResponse(parts=[ToolCallPart("read", "{}", f"call_{number}")]))

    assert replies.behind(message("assistant", "", ToolCall("call_0", "read", "{}"))) is None
    assert replies.behind(message("assistant", "", ToolCall("call_1", "read", "{}"))) is not None


def _flat(messages: list[ModelMessage]) -> list[tuple[str, str, str | None]]:
    found: list[tuple[str, str, str | None]] = []
    for sent in messages:
        for part in sent.parts:
            match part:
                case SystemPromptPart():
                    found.append(("system", part.content, None))
                case UserPromptPart(content=str(content)):
                    found.append(("user", content, None))
                case ToolReturnPart(content=str(content)):
                    found.append(("tool", content, part.tool_call_id))
                case TextPart():
                    assert isinstance(sent, ModelResponse)
                    found.append(("assistant", part.content, None))
                case ToolCallPart(args=str(arguments)):
                    found.append(("call", arguments, part.tool_call_id))
                case _:
                    assert not isinstance(sent, ModelRequest)
    return found
