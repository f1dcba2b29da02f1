"""Looking back at turns: why an item was in or not, what changed between two, what would have come of other settings.

Nothing here calls a model. Everything is answered from the log and the blobs of the session, so it is the same after
a restart and after the agent was edited.
"""

from pathlib import Path as FilePath
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from windowpane.api.comparison import Comparison
from windowpane.api.context_tests import ContextTests, Report, SavedTest
from windowpane.api.explanation import Explanation, ExplanationList
from windowpane.api.replay import Rebuilt, Rerun, WhatIf
from windowpane.context.items import ItemRef
from windowpane.insight.compare import compare
from windowpane.insight.context_tests import keep_turn, read_tests, render_test, run_tests
from windowpane.insight.explain import explain, explain_all
from windowpane.insight.past import past_turn
from windowpane.insight.replay import rebuilt, rerun
from windowpane.server.dependencies import Asking, Managing, Reading, own_session
from windowpane.server.problems import BODY, problems
from windowpane.server.routes.agents import MAX_QUERY_CHARACTERS, AgentName
from windowpane.server.routes.items import Kind, Name, Server, ref_of
from windowpane.server.routes.messages import TurnNumber
from windowpane.server.routes.sessions import Id

router = APIRouter(prefix="/api", tags=["looking back"])

TURN = "/sessions/{session_id}/turns/{turn}"


@router.get(f"{TURN}/explain", summary="Explain every item of a turn", responses=problems(404))
async def explain_turn(engine: Reading, session_id: Id, turn: TurnNumber) -> ExplanationList:
    """Return for each item that the agent had then whether it was in the request, why, and what would change that."""
    past = await past_turn(engine, session_id, turn)
    found = await anyio.to_thread.run_sync(explain_all, past)
    return ExplanationList(found)


@router.get(f"{TURN}/explain/{{type}}/{{name:path}}", summary="Explain an item of a turn", responses=problems(404))
async def explain_item(
    engine: Reading, session_id: Id, turn: TurnNumber, kind: Kind, name: Name, server: Server = None
) -> Explanation:
    """Return whether an item was in the request, why, and the smallest change that would have turned it round.

    The change is exact: made as stated it turns the decision round, and made one step smaller it does not.
    """
    ref = ref_of(kind, name, server)
    return explain(await past_turn(engine, session_id, turn), ref)


@router.get(f"{TURN}/compare", summary="Compare two turns", responses=problems(404))
async def compare_turns(
    engine: Reading,
    caller: Asking,
    session_id: Id,
    turn: TurnNumber,
    other: Annotated[int, Query(alias="with", description="The turn to compare with, as the later one.")],
    other_session: Annotated[
        str | None, Query(alias="session", description="Its session. Default: the same one.")
    ] = None,
) -> Comparison:
    """Return what entered, left, changed and moved, tokens and cost, and the first byte at which the prompts differ."""
    second = session_id if other_session is None else await own_session(engine, caller, other_session)
    before = await past_turn(engine, session_id, turn, with_catalog=False)
    after = await past_turn(engine, second, other, with_catalog=False)
    return await anyio.to_thread.run_sync(compare, before, after)


class ItemText(BaseModel):
    """Another text for a rule or a reference."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ref: ItemRef
    text: Annotated[str, Field(max_length=1_000_000)]


class Difference(BaseModel):
    """What is to be different. With nothing in it, the selection is run again as it was."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    search: dict[str, JsonValue] = Field(default_factory=dict)
    query: Annotated[str | None, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)] = None
    items: tuple[ItemText, ...] = ()


@router.get(f"{TURN}/replay", summary="Rebuild a turn's request", responses=problems(404))
async def rebuild_turn(engine: Reading, session_id: Id, turn: TurnNumber) -> Rebuilt:
    """Rebuild the request from the log and the blobs, and tell whether it is the recorded one to the byte.

    The request itself is at `…/turns/{turn}/request`.
    """
    return rebuilt(await past_turn(engine, session_id, turn, with_catalog=False))


@router.post(f"{TURN}/replay", summary="Run a turn's selection again", responses=problems(*BODY, 404))
async def replay_turn(engine: Reading, session_id: Id, turn: TurnNumber, difference: Difference) -> Rerun:
    """Run the selection again with other search settings, another query or other texts. No model is called.

    Nothing is stored. `search` changes single settings; `text` and `tools` in it are for one group of items each.
    """
    past = await past_turn(engine, session_id, turn)
    texts = {item.ref: item.text for item in difference.items}
    return await rerun(engine, past, WhatIf(search=difference.search, query=difference.query, texts=texts))


class NewTest(BaseModel):
    """How the test is to be named. Without a name it gets the beginning of the message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(max_length=200)] = ""


@router.post(f"{TURN}/test", summary="Make a context test of a turn", status_code=201, responses=problems(*BODY, 404))
async def create_test(engine: Managing, session_id: Id, turn: TurnNumber, new: NewTest) -> SavedTest:
    """Write a test that this turn passes into its agent's folder: what it selected must be selected again."""
    test = await keep_turn(engine, session_id, turn, name=new.name)
    return SavedTest(test, render_test(test))


@router.get("/agents/{agent}/tests", summary="List an agent's context tests", responses=problems(404))
async def list_tests(engine: Reading, agent: AgentName) -> ContextTests:
    """Return the tests in the agent's folder, and what is wrong with their files."""
    folder = FilePath(engine.agents.current(agent).folder)
    return await anyio.to_thread.run_sync(read_tests, folder)


@router.post("/agents/{agent}/tests/run", summary="Run an agent's context tests", responses=problems(404))
async def run_agent_tests(engine: Reading, agent: AgentName) -> Report:
    """Run every test with the real selection. No model is called, and nothing is stored."""
    return await run_tests(engine, agent)
