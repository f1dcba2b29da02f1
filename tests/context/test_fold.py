"""What each event means for the state of its session."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from windowpane.context.events import (
    ApprovalDecided,
    ApprovalRequested,
    CancelRequested,
    Erased,
    Event,
    HistoryCleared,
    ItemAdded,
    ItemRemoved,
    MessageAdded,
    ModelReplied,
    ModelSampled,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    RequestBuilt,
    ServerArrived,
    SessionCreated,
    SessionItem,
    SessionUpdated,
    ToolReturned,
    TurnError,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.fold import RECENT_MESSAGES, apply, fold
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import ItemRef, reference_ref, rule_ref, tool_ref
from windowpane.context.messages import (
    ApprovalMessage,
    AssistantMessage,
    ErrorMessage,
    ModelReply,
    Step,
    SystemMessage,
    ToolCall,
    ToolCallApproval,
    ToolQuestion,
    ToolResult,
    Usage,
    UserMessage,
)
from windowpane.context.session import OpenTurn, SessionSettings, SessionState, TurnStarts
from windowpane.stores.codec import decode_event, decode_state, encode_event, encode_state

ID = SessionId("ses_1")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
REQUEST = BlobHash("hash")

TONE, STYLE = rule_ref("tone"), rule_ref("style")
GUIDE = reference_ref("guide")
READ, WRITE = tool_ref("files", "read"), tool_ref("files", "write")


def after(*happened: Event) -> SessionState:
    """The state after a session was created and these events followed, one a second."""
    return fold(ID, recorded(SessionCreated(agent="pane", owner="ana", settings={}, items=()), *happened))


def recorded(*happened: Event) -> list[Recorded]:
    return [Recorded(seq, NOON + timedelta(seconds=seq), event) for seq, event in enumerate(happened, 1)]


def at(seq: int) -> datetime:
    return NOON + timedelta(seconds=seq)


def added(ref: ItemRef) -> ItemAdded:
    return ItemAdded(item=SessionItem(ref, "manual"), actor="user")


@pytest.mark.spec("S0.4", "S0.20", "S0.24", "S1.16")
def test_a_session_begins_with_what_its_creation_says() -> None:
    created = SessionCreated(
        agent="pane",
        owner="ana",
        name="First",
        settings={"model": "echo:echo", "temperature": 0.5, "from_a_newer_version": 1},
        items=(SessionItem(TONE, "always"),),
        servers=("files",),
    )

    assert fold(ID, recorded(created)) == SessionState(
        id=ID,
        seq=1,
        agent="pane",
        owner="ana",
        name="First",
        settings=SessionSettings(model="echo:echo", temperature=0.5),
        context_items=(SessionItem(TONE, "always"),),
        servers=frozenset({"files"}),
        created_at=at(1),
        updated_at=at(1),
    )


@pytest.mark.spec("S2.25")
def test_settings_change_one_by_one_and_none_clears_one() -> None:
    state = after(
        SessionUpdated(changes={"model": "a:b", "current_url": "https://x.example", "name": "New"}, actor="user"),
        SessionUpdated(changes={"current_url": None}, actor="user"),
    )

    assert (state.name, state.settings) == ("New", SessionSettings(model="a:b"))


@pytest.mark.spec("S0.12", "S0.39", "S0.40", "S0.41", "S1.15")
def test_adding_an_item_twice_changes_nothing_not_even_how_it_came() -> None:
    always = SessionCreated(agent="a", owner="o", settings={}, items=(SessionItem(TONE, "always"),))

    state = fold(ID, recorded(always, added(TONE), added(GUIDE), added(GUIDE)))

    assert state.context_items == (SessionItem(TONE, "always"), SessionItem(GUIDE, "manual"))


@pytest.mark.spec("S0.42")
def test_tools_of_one_name_on_two_servers_are_two_items() -> None:
    state = after(added(tool_ref("a", "read")), added(tool_ref("b", "read")))

    assert state.tools == (("a", "read"), ("b", "read"))


@pytest.mark.spec("S0.33", "S0.34", "S0.35", "S0.32", "S0.88")
def test_rules_references_and_tools_are_views_of_the_one_list() -> None:
    state = after(added(TONE), added(READ), added(GUIDE), added(STYLE))

    assert (state.rules, state.references, state.tools) == (("tone", "style"), ("guide",), (("files", "read"),))


@pytest.mark.spec("S0.11", "S0.13")
def test_a_removal_is_remembered_until_the_item_is_added_by_hand() -> None:
    server = ServerArrived(server="files", items=(SessionItem(READ, "always"), SessionItem(WRITE, "always")))

    removed = after(ItemRemoved(ref=READ, actor="user"), server)
    added_again = after(ItemRemoved(ref=READ, actor="user"), server, added(READ))

    assert removed.context_items == (SessionItem(WRITE, "always"),)
    assert (removed.removed, removed.servers) == (frozenset({READ}), frozenset({"files"}))
    assert added_again.context_items == (SessionItem(WRITE, "always"), SessionItem(READ, "manual"))
    assert added_again.removed == frozenset()


def test_a_server_that_arrives_does_not_add_what_is_there_already() -> None:
    state = after(added(READ), ServerArrived(server="files", items=(SessionItem(READ, "always"),)))

    assert state.context_items == (SessionItem(READ, "manual"),)


@pytest.mark.spec("S0.37")
def test_messages_from_outside_join_the_conversation() -> None:
    state = after(
        MessageAdded(role="user", content=" a "),
        MessageAdded(role="assistant", content="b"),
        MessageAdded(role="system", content="c"),
    )

    assert state.recent == (
        UserMessage(content=" a ", seq=2, at=at(2)),
        AssistantMessage(model_reply=ModelReply((Step("b"),)), seq=3, at=at(3)),
        SystemMessage(content="c", seq=4, at=at(4)),
    )
    assert state.message_count == 3


@pytest.mark.spec("S0.65", "S1.31")
def test_a_turn_becomes_a_user_message_and_one_assistant_message_with_every_step_and_its_request() -> None:
    call = ToolCall("c1", "files__read", "{}", READ)
    happened = (
        TurnStarted(turn=1, message="read it"),
        RequestBuilt(turn=1, request=REQUEST),
        ModelReplied(turn=1, step=Step("Looking.", tool_calls=(call,)), own_words="{signed}"),
        ToolReturned(turn=1, result=ToolResult("c1", "text")),
        ToolReturned(turn=1, result=ToolResult("c1", "a second result of the same call")),
        ModelReplied(turn=1, step=Step("Done.")),
    )
    steps = (Step("Looking.", tool_calls=(call,), results=(ToolResult("c1", "text"),)), Step("Done."))

    open_state = after(*happened)
    closed_state = after(*happened, TurnFinished(turn=1, outcome="completed"))

    asked = UserMessage(content="read it", turn=1, seq=2, at=at(2))
    assert open_state.open_turn == OpenTurn(
        turn=1, message="read it", request=REQUEST, steps=steps, own_words=("{signed}", "")
    )
    assert open_state.recent == (asked,)
    assert closed_state.open_turn is None
    assert closed_state.recent == (
        asked,
        AssistantMessage(model_reply=ModelReply(steps), request=REQUEST, turn=1, seq=8, at=at(8)),
    )
    assert (closed_state.turn_count, closed_state.turn_starts.of(1), closed_state.turn_starts.of(2)) == (1, 2, None)


def test_a_turn_that_failed_leaves_an_error_message_with_what_had_arrived_and_the_steps_that_went_well() -> None:
    error = TurnError(code="model_rate_limited", message="Wait a minute.", partial="Half an ans")
    started = (TurnStarted(turn=1, message="hi"), RequestBuilt(turn=1, request=REQUEST))

    at_once = after(*started, TurnFinished(turn=1, outcome="failed", error=error))
    later = after(
        *started, ModelReplied(turn=1, step=Step("First.")), TurnFinished(turn=1, outcome="failed", error=error)
    )

    assert at_once.recent[1:] == (
        ErrorMessage(
            content="Wait a minute.",
            code="model_rate_limited",
            partial="Half an ans",
            request=REQUEST,
            turn=1,
            seq=4,
            at=at(4),
        ),
    )
    assert [message.role for message in later.recent] == ["user", "assistant", "error"]


def test_approvals_wait_for_a_decision_about_every_call_and_then_stand_in_the_conversation() -> None:
    one, other = ToolCall("c1", "read", "{}", READ), ToolCall("c2", "write", "{}", WRITE)
    asked = (
        TurnStarted(turn=1, message="go"),
        ModelReplied(turn=1, step=Step(tool_calls=(one, other))),
        ApprovalRequested(turn=1, calls=(one, other)),
    )

    half = after(*asked, ApprovalDecided(turn=1, decisions={"c1": "allow_session"}))
    whole = after(
        *asked,
        ApprovalDecided(turn=1, decisions={"c1": "allow_session"}),
        ApprovalDecided(turn=1, decisions={"c1": "deny", "c2": "deny", "unknown": "allow_once"}),
    )

    assert half.open_turn is not None
    assert (half.open_turn.undecided, half.open_turn.unanswered) == ((other,), (one, other))
    assert [message.role for message in half.recent] == ["user"]
    assert half.allowed_tools == whole.allowed_tools == frozenset({READ})
    assert whole.recent[-1] == ApprovalMessage(
        tool_call_approvals=(ToolCallApproval(one, "allow_session"), ToolCallApproval(other, "deny")),
        turn=1,
        seq=6,
        at=at(6),
    )


def test_a_request_to_cancel_is_seen_by_whoever_runs_the_turn() -> None:
    state = after(TurnStarted(turn=1, message="go"), CancelRequested(turn=1))

    assert state.open_turn == OpenTurn(turn=1, message="go", cancel_requested=True)


def test_events_of_another_turn_than_the_open_one_change_nothing() -> None:
    before = after(TurnStarted(turn=2, message="go"))
    late: tuple[Event, ...] = (
        RequestBuilt(turn=1, request=REQUEST),
        ModelReplied(turn=1, step=Step("late")),
        ToolReturned(turn=1, result=ToolResult("c", "late")),
        ApprovalRequested(turn=1, calls=()),
        ApprovalDecided(turn=1, decisions={"c": "deny"}),
        CancelRequested(turn=1),
        TurnFinished(turn=1, outcome="interrupted"),
    )

    for event in late:
        assert apply(before, Recorded(3, at(3), event)) == replace(before, seq=3, updated_at=at(3))


@pytest.mark.spec("S4.48")
def test_clearing_the_history_forgets_messages_and_keeps_everything_else() -> None:
    state = after(added(TONE), TurnStarted(turn=1, message="secret"), HistoryCleared(turns=1))

    cleared = {"seq": 4, "updated_at": at(4), "turn_starts": TurnStarts(erased=1), "erased_seq": 4}
    assert state == replace(after(added(TONE)), **cleared)
    assert state == after(added(TONE), Erased(), HistoryCleared(turns=1))


@pytest.mark.parametrize(
    ("first", "title"),
    [
        ("Hello", "Hello"),
        (" \n Hello\nthere ", "Hello"),
        ("word " * 20, "word " * 11 + "word…"),
        ("x" * 61, "x" * 60 + "…"),
    ],
)
def test_a_session_without_a_name_is_called_by_how_its_conversation_begins(first: str, title: str) -> None:
    begun = (TurnStarted(turn=1, message=first), TurnFinished(turn=1, outcome="completed"))
    later = TurnStarted(turn=2, message="Something else")

    assert after().title == ""
    assert after(*begun, later).title == title
    assert after(*begun, SessionUpdated(changes={"name": "Named"}, actor="user")).title == "Named"
    assert after(*begun, HistoryCleared(turns=1)).title == ""
    assert after(*begun, HistoryCleared(turns=1), later).title == "Something else"


def test_an_erased_event_means_nothing_any_more() -> None:
    state = after(added(TONE), Erased())

    assert state == replace(after(added(TONE)), seq=3, updated_at=at(3))


def test_the_state_keeps_the_latest_messages_and_counts_all_of_them() -> None:
    state = after(*(MessageAdded(role="user", content=str(number)) for number in range(200)))

    contents = [message.content for message in state.recent if isinstance(message, UserMessage)]
    assert contents == [str(number) for number in range(200 - RECENT_MESSAGES, 200)]
    assert state.message_count == 200


@given(st.lists(st.integers(min_value=1), max_size=400))
def test_turn_starts_are_a_list_that_is_cheap_to_extend(seqs: list[int]) -> None:
    starts = TurnStarts()
    for seq in seqs:
        starts = starts.with_next(seq)

    assert list(starts) == seqs
    assert len(starts) == len(seqs)
    assert [starts.of(turn) for turn in range(len(seqs) + 2)] == [None, *seqs, None]


names = st.sampled_from(["tone", "guide", "read", ""])
refs: SearchStrategy[ItemRef] = st.one_of(
    st.builds(rule_ref, names), st.builds(reference_ref, names), st.builds(tool_ref, names, names)
)
session_items = st.lists(st.builds(SessionItem, refs, st.sampled_from(["always", "manual"])), max_size=3).map(tuple)
numbers = st.integers(min_value=0, max_value=2**40)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
settings_changes = st.fixed_dictionaries(
    {},
    optional={
        "name": st.none() | st.text(),
        "model": st.none() | st.text(),
        "temperature": st.none() | st.floats(0, 2),
        "max_chat_turns": st.none() | numbers,
        "tool_permission": st.none() | st.sampled_from(["always", "never", "tool"]),
        "search": st.none() | st.dictionaries(st.text(), values, max_size=3),
        "user_time": st.none() | st.text(),
        "unknown": values,
    },
)
calls = st.builds(ToolCall, st.sampled_from("abc"), st.text(), st.text(), st.none() | refs)
results = st.builds(ToolResult, st.sampled_from("abc"), st.text(), st.booleans(), numbers)
steps = st.builds(
    Step,
    text=st.text(),
    thinking=st.text(),
    tool_calls=st.lists(calls, max_size=3).map(tuple),
    usage=st.builds(Usage, numbers, numbers, numbers, numbers),
    model=st.text(),
    latency_ms=numbers,
)
# Few turns, so that events often belong to the open one and sometimes to another.
turns = st.integers(1, 2)
actors = st.sampled_from(["user", "model", "system"])
any_event: SearchStrategy[Event] = st.one_of(
    st.builds(
        SessionCreated,
        agent=st.text(),
        owner=st.text(),
        name=st.text(),
        settings=settings_changes,
        items=session_items,
        servers=st.lists(names, max_size=2).map(tuple),
    ),
    st.builds(SessionUpdated, changes=settings_changes, actor=actors),
    st.builds(ItemAdded, item=st.builds(SessionItem, refs, st.just("manual")), actor=actors),
    st.builds(ItemRemoved, ref=refs, actor=actors),
    st.builds(ServerArrived, server=names, items=session_items),
    st.builds(MessageAdded, role=st.sampled_from(["user", "assistant", "system"]), content=st.text()),
    st.builds(TurnStarted, turn=turns, message=st.text()),
    st.builds(RequestBuilt, turn=turns, request=st.text().map(BlobHash)),
    st.builds(ModelReplied, turn=turns, step=steps),
    st.builds(ToolReturned, turn=turns, result=results),
    st.builds(ApprovalRequested, turn=turns, calls=st.lists(calls, max_size=3).map(tuple)),
    st.builds(
        ApprovalDecided,
        turn=turns,
        decisions=st.dictionaries(st.sampled_from("abc"), st.sampled_from(["allow_once", "allow_session", "deny"])),
        actor=actors,
    ),
    st.builds(
        QuestionAsked,
        turn=turns,
        question=st.builds(
            ToolQuestion,
            id=st.sampled_from("xy"),
            call_id=st.sampled_from("abc"),
            server=names,
            kind=st.sampled_from(["form", "url", "sampling"]),
            message=st.text(),
            schema=st.dictionaries(st.text(), values, max_size=2),
            url=st.text(),
        ),
    ),
    st.builds(
        QuestionAnswered,
        turn=turns,
        question_id=st.sampled_from("xy"),
        action=st.sampled_from(["accept", "decline", "cancel"]),
        content=st.none() | st.dictionaries(st.text(), values, max_size=2),
        actor=actors,
        reason=st.text(),
    ),
    st.builds(ModelSampled, turn=turns, question_id=st.sampled_from("xy"), step=steps),
    st.builds(CancelRequested, turn=turns, actor=actors),
    st.builds(
        TurnFinished,
        turn=turns,
        outcome=st.sampled_from(["completed", "failed", "cancelled", "interrupted"]),
        error=st.none() | st.builds(TurnError, code=st.text(), message=st.text(), partial=st.text()),
    ),
    st.builds(HistoryCleared, actor=actors),
    st.just(Erased()),
)
logs = st.lists(any_event, max_size=30).map(lambda happened: recorded(*happened))


@given(any_event)
def test_an_event_comes_back_from_json_as_it_was(event: Event) -> None:
    assert decode_event(encode_event(event)) == event


@given(logs, st.data())
def test_folding_in_pieces_equals_folding_whole_also_through_a_snapshot(
    log: list[Recorded], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(log)))

    first = fold(ID, log[:cut])
    snapshot = decode_state(encode_state(first))

    assert snapshot == first
    assert fold(ID, log[cut:], snapshot) == fold(ID, log[cut:], first) == fold(ID, log)


def test_a_snapshot_keeps_the_moment_whatever_the_time_zone_of_the_writer() -> None:
    here = datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    state = apply(SessionState(id=ID), Recorded(1, here, MessageAdded(role="user", content="x")))

    assert decode_state(encode_state(state)) == state
