"""Looking back at turns: why an item was in or not, what changed between two, what would have come of other settings.

Nothing here calls a model. Everything is answered from the log and the blobs of the session, so it is the same after
a restart and after the agent was edited.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from windowpane.context.items import IncludeMode, ItemRef
from windowpane.context.request import Evidence
from windowpane.insight.compare import Comparison, compare
from windowpane.insight.context_tests import (
    ContextTest,
    ContextTests,
    Report,
    keep_turn,
    read_tests,
    render_test,
    run_tests,
)
from windowpane.insight.explain import Effect, Explanation, Fate, Need, RoomState, explain, explain_all
from windowpane.insight.past import past_turn
from windowpane.insight.replay import Rebuilt, Rerun, WhatIf, rebuilt, rerun
from windowpane.server.dependencies import Asking, Managing, Reading, own_session
from windowpane.server.problems import BODY, problems
from windowpane.server.routes.agents import MAX_QUERY_CHARACTERS, AgentName
from windowpane.server.routes.items import Kind, Name, Server, ref_of
from windowpane.server.routes.messages import TurnNumber
from windowpane.server.routes.sessions import Id

router = APIRouter(prefix="/api", tags=["looking back"])

TURN = "/sessions/{session_id}/turns/{turn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """What would have turned a decision round, in words and value by value.

    `search` are the search settings in it, as a replay and `agent.yaml` take them; `tokens` is how much larger the
    window would have to be.
    """

    effect: Effect
    text: str
    needs: tuple[Need, ...]
    search: Mapping[str, Mapping[str, Any]]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationView:
    """Why an item was in a request or not. `changes` would have turned that round, the smallest first.

    `tokens` is what all of the item takes, and `compared` is how many candidates its score was ranked among.
    """

    ref: ItemRef
    included: bool
    fate: Fate
    mode: IncludeMode | None
    code: str
    reason: str
    evidence: Evidence | None
    compared: int
    tokens: int | None
    room: RoomState
    changes: tuple[ChangeView, ...]


@dataclass(frozen=True, slots=True)
class ExplanationList:
    """Everything that the agent had at the time of the turn, and why it was in the request or not."""

    items: tuple[ExplanationView, ...]


@router.get(f"{TURN}/explain", summary="Explain every item of a turn", responses=problems(404))
async def explain_turn(engine: Reading, session_id: Id, turn: TurnNumber) -> ExplanationList:
    """Return for each item that the agent had then whether it was in the request, why, and what would change that."""
    past = await past_turn(engine, session_id, turn)
    found = await anyio.to_thread.run_sync(explain_all, past)
    return ExplanationList(tuple(map(_view, found)))


@router.get(f"{TURN}/explain/{{type}}/{{name:path}}", summary="Explain an item of a turn", responses=problems(404))
async def explain_item(
    engine: Reading, session_id: Id, turn: TurnNumber, kind: Kind, name: Name, server: Server = None
) -> ExplanationView:
    """Return whether an item was in the request, why, and the smallest change that would have turned it round.

    The change is exact: made as stated it turns the decision round, and made one step smaller it does not.
    """
    ref = ref_of(kind, name, server)
    return _view(explain(await past_turn(engine, session_id, turn), ref))


def _view(found: Explanation) -> ExplanationView:
    return ExplanationView(
        ref=found.ref,
        included=found.included,
        fate=found.fate,
        mode=found.mode,
        code=found.code,
        reason=found.reason,
        evidence=found.evidence,
        compared=found.compared,
        tokens=found.tokens,
        room=found.room,
        changes=tuple(
            ChangeView(
                effect=change.effect, text=change.text, needs=change.needs, search=change.search, tokens=change.tokens
            )
            for change in found.changes
        ),
    )


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


@dataclass(frozen=True, slots=True)
class SavedTest:
    """A test that was written into the agent's folder, and what the file says."""

    test: ContextTest
    text: str


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
