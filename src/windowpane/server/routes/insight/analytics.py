"""Looking back over many turns: what they cost, what was used, what could be better.

Numbers come from the analytics store, which is brought up to date when it is read; `behind` says when it is not
quite. An owner sees their own turns. A manager can ask for all owners'.
"""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, TypedDict

from fastapi import Depends, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

from windowpane.api.analytics import CostLimitsView, Dashboard, Listed
from windowpane.api.context_tests import ContextTest
from windowpane.api.evaluation import Evaluation, Tuning
from windowpane.api.suggestions import Applied, Edit, Similar, SuggestionList
from windowpane.api.turns import OutsideCallList, TurnUse
from windowpane.callers import Caller
from windowpane.context.items import ItemRef
from windowpane.errors import ScopeNeededError
from windowpane.server.dependencies import Asking, Managing, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import MAX_QUERY_CHARACTERS, AgentName, AlsoIn, Everyone, Id, RequestBody, TurnNumber
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, expected, tag

router = LazyRouter(prefix="/api", tags=["analytics"])

CSV = "text/csv; charset=utf-8"


def checked_everyone(caller: Caller, everyone: bool) -> bool:
    """Return whether the turns of every owner count.

    Raises:
        ScopeNeededError: they are for callers who may manage.
    """
    if everyone and not caller.may("manage"):
        raise ScopeNeededError("manage")
    return everyone


class Wanted(TypedDict):
    """Which turns count."""

    agent: str | None
    model: str | None
    since: date | None
    until: date | None
    everyone: bool


async def wanted_of(
    caller: Asking,
    since: Annotated[date | None, Query(description="The first day that counts, in UTC.")] = None,
    until: Annotated[date | None, Query(description="The last day that counts, in UTC.")] = None,
    agent: Annotated[str | None, Query(description="Only turns with this agent.")] = None,
    model: Annotated[str | None, Query(description="Only turns with this model.")] = None,
    everyone: Everyone = False,
) -> Wanted:
    """Return which turns count.

    Raises:
        ScopeNeededError: everyone's turns are for callers who may manage.
    """
    return Wanted(agent=agent, model=model, since=since, until=until, everyone=checked_everyone(caller, everyone))


WantedTurns = Annotated[Wanted, Depends(wanted_of)]


@router.get("/analytics", summary="See what turns cost and whether it was used", responses=problems(403))
async def read_analytics(pane: Reading, wanted: WantedTurns) -> Dashboard:
    """Return turns, tokens and cost by day, model, agent, part and item; use, selection quality, latency and more."""
    return await pane.analytics.dashboard(**wanted)


@router.get(
    "/analytics/{listed}.csv",
    summary="Get a list of the analytics as CSV",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **problems(403)},
)
async def export_analytics(
    pane: Reading, wanted: WantedTurns, listed: Annotated[Listed, Path(description="Which of the lists.")]
) -> Response:
    """Return one of the lists as a table, a line for each entry, with a heading."""
    head = {"Content-Disposition": f'attachment; filename="windowpane-{listed}.csv"'}
    return Response(await pane.analytics.csv(listed, **wanted), media_type=CSV, headers=head)


@router.get("/costs", summary="See the cost limits", responses=problems())
async def read_costs(pane: Reading) -> CostLimitsView:
    """Return what your model calls may cost a day and a month (UTC), and what they cost so far.

    The list is empty where the server has no limits, and then nothing is counted. `/api/analytics` has all costs.
    """
    return await pane.analytics.cost_limits()


@router.get("/calls", summary="See calls that belong to no session", responses=problems())
async def read_outside_calls(
    pane: Reading, day: Annotated[date | None, Query(description="Of which day, in UTC. Today unless told.")] = None
) -> OutsideCallList:
    """Return your calls of a day that belong to no session, such as those of a search to an embedding endpoint.

    `session` has them: read one at `/api/sessions/{session}/calls/{number}`, or delete them all with the session.
    Calls that serve all, such as those that index an agent's items, are the owner's `local`.
    """
    return await pane.analytics.outside_calls(day)


@router.get(
    "/sessions/{session_id}/turns/{turn}/use", summary="See which items an answer made use of", responses=problems(404)
)
async def read_turn_use(pane: Reading, session_id: Id, turn: TurnNumber) -> TurnUse:
    """Return for each item that was sent whether it was called, cited, quoted or drawn upon, and by which words.

    That no trace was found does not prove that an item was of no use: what only shapes an answer leaves none.
    """
    return TurnUse(await pane.turns.use(session_id, turn))


@router.get("/sessions/{session_id}/similar", summary="See what helped with similar questions", responses=problems(404))
async def find_similar(
    pane: Reading,
    session_id: Id,
    message: Annotated[str, Query(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="What is to be asked.")],
) -> Similar:
    """Return items that were of use together in past turns of the same owner that asked for about the same.

    They are only offered: add what you want to the session. No model is called.
    """
    return await pane.analytics.similar(session_id, message)


@router.get("/agents/{agent}/suggestions", summary="See what could be better", responses=problems(403, 404))
async def list_suggestions(
    pane: Reading,
    caller: Asking,
    agent: AgentName,
    since: Annotated[date | None, Query(description="The first day that counts, in UTC.")] = None,
    everyone: Everyone = False,
) -> SuggestionList:
    """Return which items to demote, promote, shorten or remove, with what was counted and what it would save."""
    return await pane.agents.suggestions(agent, since=since, everyone=checked_everyone(caller, everyone))


class EditBody(RequestBody):
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
    pane: Managing,
    response: Response,
    agent: AgentName,
    body: EditBody,
    if_match: IfMatch = None,
    also_in: AlsoIn = None,
) -> Applied:
    """Change an item's settings in the agent's files. The answer names the edit that undoes it: send that to undo it.

    `If-Match` is the `revision` of the suggestion, or of the answer that is to be undone.
    """
    edit = Edit(ref=body.ref, settings=body.settings)
    done = await pane.agents.apply_suggestion(agent, edit, revision=expected(if_match), also_in=also_in)
    tag(response, done.revision)
    return done


class LabelBody(BaseModel):
    """A question, and the items that it needs; those in `may` are neither right nor wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    message: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    must: tuple[ItemRef, ...] = ()
    may: tuple[ItemRef, ...] = ()
    name: Annotated[str, Field(max_length=1000)] = ""


class LabelsBody(RequestBody):
    """Labelled questions. Without any, labels are what your past turns with the agent made use of."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: Annotated[tuple[LabelBody, ...], Field(max_length=1_000)] = ()

    @property
    def tests(self) -> tuple[ContextTest, ...]:
        """Return the questions as context tests."""
        return tuple(
            ContextTest(name=label.name, message=label.message, must=label.must, may=label.may) for label in self.labels
        )


@router.post(
    "/agents/{agent}/evaluation", summary="See how well the selection does", responses=problems(*BODY, 403, 404)
)
async def evaluate_agent(
    pane: Reading, caller: Asking, agent: AgentName, body: LabelsBody, everyone: Everyone = False
) -> Evaluation:
    """Return recall, precision and F1, how many are selected, and how often candidates of each score were needed.

    No model is called.
    """
    return await pane.agents.evaluate(agent, body.tests, everyone=checked_everyone(caller, everyone))


@router.post("/agents/{agent}/tuning", summary="Find better search settings", responses=problems(*BODY, 403, 404))
async def tune_agent(
    pane: Reading, caller: Asking, agent: AgentName, body: LabelsBody, everyone: Everyone = False
) -> Tuning:
    """Return search settings that would have chosen better, measured on held-out questions."""
    return Tuning(await pane.agents.tune(agent, body.tests, everyone=checked_everyone(caller, everyone)))
