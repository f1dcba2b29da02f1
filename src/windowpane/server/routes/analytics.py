"""Looking back over many turns: what they cost, what was used, what could be better.

Numbers come from the analytics store, which catches up with the sessions at each request; `behind` says when it has
not quite. Callers see their own turns; with the scope `manage` they can ask for everyone's.
"""

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Annotated, cast

import anyio.to_thread
from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr
from starlette.requests import HTTPConnection

from windowpane.api.analytics import Dashboard, Filters, Listed
from windowpane.api.context_tests import ContextTest
from windowpane.api.evaluation import Evaluation, Tuning
from windowpane.api.suggestions import Applied, Edit, Similar, SuggestionList
from windowpane.api.turns import TurnUse
from windowpane.context.items import ItemRef
from windowpane.engine import Engine
from windowpane.errors import ScopeNeededError
from windowpane.insight.analytics.report import as_csv, counted_turns, dashboard, item_rows
from windowpane.insight.analytics.sharing import similar
from windowpane.insight.analytics.suggest import apply, suggestions
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.insight.context_tests import title_of
from windowpane.insight.evaluate import LabelledQuestion, asked_before, asked_now, evaluate
from windowpane.insight.past import past_turn
from windowpane.insight.tune import tune
from windowpane.insight.use import use
from windowpane.search.settings import search_settings
from windowpane.server.dependencies import Asking, Managing, Reading
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, expected, tag
from windowpane.server.routes.agents import MAX_QUERY_CHARACTERS, AgentName
from windowpane.server.routes.messages import TurnNumber
from windowpane.server.routes.sessions import Id

router = APIRouter(prefix="/api", tags=["analytics"])

CSV = "text/csv; charset=utf-8"


async def updater_of(connection: HTTPConnection) -> AnalyticsUpdater:
    """Return the app's updater."""
    return cast("AnalyticsUpdater", connection.app.state.updater)


Updater = Annotated[AnalyticsUpdater, Depends(updater_of)]


async def filters_of(
    caller: Asking,
    since: Annotated[date | None, Query(description="The first day that counts, in UTC.")] = None,
    until: Annotated[date | None, Query(description="The last day that counts, in UTC.")] = None,
    agent: Annotated[str | None, Query(description="Only turns with this agent.")] = None,
    model: Annotated[str | None, Query(description="Only turns with this model.")] = None,
    everyone: Annotated[bool, Query(description="The turns of every owner; it needs the scope `manage`.")] = False,
) -> Filters:
    """Return which turns count.

    Raises:
        ScopeNeededError: everyone's turns are for those who may manage.
    """
    if everyone and not caller.may("manage"):
        raise ScopeNeededError("manage")
    return Filters(owner=None if everyone else caller.owner, agent=agent, model=model, since=since, until=until)


Wanted = Annotated[Filters, Depends(filters_of)]


@router.get("/analytics", summary="See what turns cost and whether it was used", responses=problems(403))
async def read_analytics(engine: Reading, updater: Updater, filters: Wanted) -> Dashboard:
    """Return turns, tokens and cost by day, model, agent, part and item; use, selection quality, latency and more."""
    return await _dashboard(updater, filters)


@router.get(
    "/analytics/{listed}.csv",
    summary="Get a list of the analytics as CSV",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **problems(403)},
)
async def export_analytics(
    engine: Reading,
    updater: Updater,
    filters: Wanted,
    listed: Annotated[Listed, Path(description="Which of the lists.")],
) -> Response:
    """Return one of the lists as a table, a line for each entry, with a heading."""
    found = await _dashboard(updater, filters)
    head = {"Content-Disposition": f'attachment; filename="windowpane-{listed}.csv"'}
    return Response(as_csv(found, listed), media_type=CSV, headers=head)


async def _dashboard(updater: AnalyticsUpdater, filters: Filters) -> Dashboard:
    kept = await updater.update()
    return await anyio.to_thread.run_sync(dashboard, updater.analytics, filters, kept)


@router.get(
    "/sessions/{session_id}/turns/{turn}/use", summary="See which items an answer made use of", responses=problems(404)
)
async def read_turn_use(engine: Reading, session_id: Id, turn: TurnNumber) -> TurnUse:
    """Return for each item that was sent whether it was called, cited, quoted or drawn upon, and by which words.

    That no trace was found does not prove that an item was of no use: what only shapes an answer leaves none.
    """
    past = await past_turn(engine, session_id, turn, with_catalog=False)
    return TurnUse(await anyio.to_thread.run_sync(use, past))


@router.get("/sessions/{session_id}/similar", summary="See what helped with similar questions", responses=problems(404))
async def find_similar(
    engine: Reading,
    updater: Updater,
    session_id: Id,
    message: Annotated[str, Query(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What is to be asked.")],
) -> Similar:
    """Return items that were of use together in past turns of the same owner that asked for about the same.

    They are only offered: add what you want to the session. No model is called.
    """
    await updater.update()
    return await similar(engine, updater.analytics, session_id, message)


Everyone = Annotated[bool, Query(description="Look at the turns of every owner; it needs the scope `manage`.")]
Since = Annotated[date | None, Query(description="The first day that counts, in UTC.")]


@router.get("/agents/{agent}/suggestions", summary="See what could be better", responses=problems(403, 404))
async def list_suggestions(
    engine: Reading,
    caller: Asking,
    updater: Updater,
    agent: AgentName,
    since: Since = None,
    everyone: Everyone = False,
) -> SuggestionList:
    """Return which items to demote, promote, shorten or remove, with what was counted and what it would save."""
    filters = await filters_of(caller, since=since, agent=agent, everyone=everyone)
    found = engine.agents.current(agent)
    items = await engine.items(agent)
    await updater.update()

    def looked_up() -> SuggestionList:
        turns = counted_turns(updater.analytics, filters)
        return SuggestionList(turns, suggestions(found, items, item_rows(updater.analytics, filters), turns))

    return await anyio.to_thread.run_sync(looked_up)


class EditBody(BaseModel):
    """Settings of an item and what they become: `include` and, but for tools, `enabled`. Null takes one away."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"ref": {"type": "reference", "name": "billing"}, "settings": {"include": "agent"}}]
        },
    )

    ref: ItemRef
    settings: Mapping[str, StrictStr | StrictBool | None]


@router.post(
    "/agents/{agent}/suggestions",
    summary="Apply a suggestion, or undo one",
    responses=problems(*BODY, 404, 409, 412, 428),
)
async def apply_suggestion(
    engine: Managing, response: Response, agent: AgentName, body: EditBody, if_match: IfMatch = None
) -> Applied:
    """Change an item's settings in the agent's files. The answer names the edit that undoes it: send that to undo it.

    `If-Match` is the `revision` of the suggestion, or of the answer that is to be undone.
    """
    edit = Edit(ref=body.ref, settings=body.settings)
    change = partial(apply, engine.agents.current(agent), edit, revision=expected(if_match))
    done = await anyio.to_thread.run_sync(change)
    tag(response, done.revision)
    return done


class LabelBody(BaseModel):
    """A question, and the items that it needs; those in `may` are neither right nor wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    message: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    must: tuple[ItemRef, ...] = ()
    may: tuple[ItemRef, ...] = ()


class LabelsBody(BaseModel):
    """Labelled questions. Without any, labels are what your past turns with the agent made use of."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: Annotated[tuple[LabelBody, ...], Field(max_length=10_000)] = ()


LOOKED_AT = 2000
"""How many of the latest turns are taken as labels."""


@router.post(
    "/agents/{agent}/evaluation", summary="See how well the selection does", responses=problems(*BODY, 403, 404)
)
async def evaluate_agent(
    engine: Reading, caller: Asking, updater: Updater, agent: AgentName, body: LabelsBody, everyone: Everyone = False
) -> Evaluation:
    """Return recall, precision and F1, how many are selected, and how often candidates of each score were needed.

    No model is called.
    """
    found = engine.agents.current(agent)
    filters = await filters_of(caller, agent=agent, everyone=everyone)
    questions = await _questions(engine, updater, filters, body)
    return evaluate(found.name, questions, search_settings(found.settings.search))


@router.post("/agents/{agent}/tuning", summary="Find better search settings", responses=problems(*BODY, 403, 404))
async def tune_agent(
    engine: Reading, caller: Asking, updater: Updater, agent: AgentName, body: LabelsBody, everyone: Everyone = False
) -> Tuning:
    """Return search settings that would have chosen better, measured on questions that they were not chosen by."""
    found = engine.agents.current(agent)
    filters = await filters_of(caller, agent=agent, everyone=everyone)
    questions = await _questions(engine, updater, filters, body)
    settings = search_settings(found.settings.search)
    return Tuning(await anyio.to_thread.run_sync(tune, questions, settings))


async def _questions(
    engine: Engine, updater: AnalyticsUpdater, filters: Filters, body: LabelsBody
) -> list[LabelledQuestion]:
    agent = filters.agent or ""
    if body.labels:
        labels = [
            ContextTest(
                name=f"{number}: {title_of(label.message)}", message=label.message, must=label.must, may=label.may
            )
            for number, label in enumerate(body.labels, 1)
        ]
        return await asked_now(engine, agent, labels)
    await updater.update()
    lessons = partial(updater.analytics.lessons, filters.owner, agent, limit=LOOKED_AT)
    return await asked_before(engine, await anyio.to_thread.run_sync(lessons))
