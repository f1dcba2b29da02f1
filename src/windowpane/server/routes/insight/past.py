"""Looking back at turns: why an item was in or not, what changed between two, what would have come of other settings.

Nothing here calls a model. Everything is answered from the log and the blobs of the session, so it is the same after
a restart and after the agent was edited.
"""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from windowpane.api.comparison import CacheReport, CallComparison, Comparison
from windowpane.api.context_tests import ContextTests, Report, SavedTest
from windowpane.api.explanation import Explanation, ExplanationList
from windowpane.api.replay import Rebuilt, Rerun, WhatIf
from windowpane.api.turns import CallList, CallRecord
from windowpane.api.xray import XrayReport
from windowpane.context.items import ItemRef
from windowpane.server.dependencies import Managing, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import (
    MAX_QUERY_CHARACTERS,
    AgentName,
    CallNumber,
    Id,
    Kind,
    Name,
    RequestBody,
    Server,
    SessionCallNumber,
    TurnNumber,
    ref_of,
)
from windowpane.server.problems import BODY, problems

router = LazyRouter(prefix="/api", tags=["looking back"])

TURN = "/sessions/{session_id}/turns/{turn}"


@router.get(f"{TURN}/calls", summary="List the calls of a turn", responses=problems(404))
async def list_calls(pane: Reading, session_id: Id, turn: TurnNumber) -> CallList:
    """Return every HTTP request that the turn sent to its provider, retries included, with tokens, time and cost."""
    return await pane.turns.calls(session_id, turn)


@router.get(f"{TURN}/calls/{{number}}", summary="Get a call of a turn", responses=problems(404))
async def get_call(pane: Reading, session_id: Id, turn: TurnNumber, number: CallNumber) -> CallRecord:
    """Return one call: its messages and tools as built, its head and body as sent, and whose each byte is."""
    return await pane.turns.call(session_id, turn, number)


@router.get("/sessions/{session_id}/calls", summary="List the calls of a session", responses=problems(404))
async def list_session_calls(pane: Reading, session_id: Id) -> CallList:
    """Return every HTTP request that was sent for the session, also those for summaries."""
    return await pane.sessions.calls(session_id)


@router.get("/sessions/{session_id}/calls/{number}", summary="Get a call of a session", responses=problems(404))
async def get_session_call(pane: Reading, session_id: Id, number: SessionCallNumber) -> CallRecord:
    """Return one call as built and as sent, with the parts of its body, also one that belongs to no turn."""
    return await pane.sessions.call(session_id, number)


@router.get("/sessions/{session_id}/calls/{number}/compare", summary="Compare two calls", responses=problems(404))
async def compare_calls(
    pane: Reading,
    session_id: Id,
    number: SessionCallNumber,
    other: Annotated[int, Query(alias="with", description="The call to compare it with, the later one.")],
) -> CallComparison:
    """Return what is different between two calls of a session, part by part, with tokens and the lines that differ."""
    return await pane.sessions.compare_calls(session_id, number, other)


@router.get("/sessions/{session_id}/cache", summary="See what broke the prompt cache", responses=problems(404))
async def get_session_cache(pane: Reading, session_id: Id) -> CacheReport:
    """Return for each call what the provider read from its cache and what was expected, and what broke the prefix.

    A break names the block of the body and the item that it belongs to, the kind of change, and what it cost.
    """
    return await pane.sessions.cache(session_id)


@router.get("/sessions/{session_id}/xray", summary="See through a session's calls", responses=problems(404))
async def xray_session(pane: Reading, session_id: Id) -> XrayReport:
    """Return each call with what it is made of and what it shares with the one before, and what is of no use in it."""
    return await pane.sessions.xray(session_id)


@router.get(f"{TURN}/explain", summary="Explain every item of a turn", responses=problems(404))
async def explain_turn(pane: Reading, session_id: Id, turn: TurnNumber) -> ExplanationList:
    """Return for each item that the agent had then whether it was in the request, why, and what would change that."""
    return ExplanationList(await pane.turns.explanations(session_id, turn))


@router.get(f"{TURN}/explain/{{type}}/{{name:path}}", summary="Explain an item of a turn", responses=problems(404))
async def explain_item(
    pane: Reading, session_id: Id, turn: TurnNumber, kind: Kind, name: Name, server: Server = None
) -> Explanation:
    """Return whether an item was in the request, why, and the smallest change that would have turned it round.

    The change is exact: made as stated it turns the decision round, and made one step smaller it does not.
    """
    return await pane.explain(session_id, turn, ref_of(kind, name, server))


@router.get(f"{TURN}/compare", summary="Compare two turns", responses=problems(404))
async def compare_turns(
    pane: Reading,
    session_id: Id,
    turn: TurnNumber,
    other: Annotated[int, Query(alias="with", description="The turn to compare with, as the later one.")],
    other_session: Annotated[
        str | None, Query(alias="session", description="Its session. Default: the same one.")
    ] = None,
) -> Comparison:
    """Return what entered, left, changed and moved, tokens and cost, and the first byte at which the prompts differ."""
    return await pane.turns.compare(session_id, turn, other, other_session_id=other_session)


class ItemText(BaseModel):
    """Another text or description for a rule or a reference. What is null stays as it was."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ref: ItemRef
    text: Annotated[str | None, Field(max_length=1_000_000)] = None
    description: Annotated[str | None, Field(max_length=10_000)] = None


class Difference(RequestBody):
    """What is to be different. With nothing in it, the selection is run again as it was."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    search: dict[str, JsonValue] = Field(default_factory=dict)
    query: Annotated[str | None, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)] = None
    items: tuple[ItemText, ...] = ()


@router.get(f"{TURN}/replay", summary="Rebuild a turn's request", responses=problems(404))
async def rebuild_turn(pane: Reading, session_id: Id, turn: TurnNumber) -> Rebuilt:
    """Rebuild the request from the log and the blobs, and tell whether it is the recorded one to the byte.

    The request itself is at `…/turns/{turn}/request`.
    """
    return await pane.turns.rebuild(session_id, turn)


@router.post(f"{TURN}/replay", summary="Run a turn's selection again", responses=problems(*BODY, 404))
async def replay_turn(pane: Reading, session_id: Id, turn: TurnNumber, difference: Difference) -> Rerun:
    """Run the selection again with other search settings, another query or other texts. No model is called.

    Nothing is stored. `search` changes single settings; `text` and `tools` in it are for one group of items each.
    """
    texts = {item.ref: item.text for item in difference.items if item.text is not None}
    descriptions = {item.ref: item.description for item in difference.items if item.description is not None}
    what_if = WhatIf(search=difference.search, query=difference.query, texts=texts, descriptions=descriptions)
    return await pane.turns.replay(session_id, turn, what_if)


class NewTest(RequestBody):
    """How the test is to be named. Without a name it gets the beginning of the message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(max_length=200)] = ""


@router.post(f"{TURN}/test", summary="Make a context test of a turn", status_code=201, responses=problems(*BODY, 404))
async def create_test(pane: Managing, session_id: Id, turn: TurnNumber, new: NewTest) -> SavedTest:
    """Write a test that this turn passes into its agent's folder: what it selected must be selected again."""
    return await pane.turns.save_test(session_id, turn, name=new.name)


@router.get("/agents/{agent}/tests", summary="List an agent's context tests", responses=problems(404))
async def list_tests(pane: Reading, agent: AgentName) -> ContextTests:
    """Return the tests in the agent's folder, and what is wrong with their files."""
    return await pane.agents.tests(agent)


@router.post("/agents/{agent}/tests/run", summary="Run an agent's context tests", responses=problems(404))
async def run_agent_tests(pane: Reading, agent: AgentName) -> Report:
    """Run every test with the real selection. No model is called, and nothing is stored."""
    return await pane.agents.run_tests(agent)
