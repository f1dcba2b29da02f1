"""Models, as OpenAI's clients list them: the agents."""

from dataclasses import dataclass
from typing import Literal

from windowpane.server.dependencies import Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai.errors import OpenAIRoute, failures

router = LazyRouter(prefix="/v1", tags=["openai"], route_class=OpenAIRoute)

CREATED = 1_767_225_600
"""Agents are folders that change; clients want a time, and get the same one for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An agent, under its name."""

    id: str
    object: Literal["model"] = "model"
    created: int = CREATED
    owned_by: str = "windowpane"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """Every agent."""

    object: Literal["list"] = "list"
    data: tuple[Model, ...]


@router.head("/models", include_in_schema=False)
@router.get("/models", summary="List agents, as OpenAI's clients list models", responses=failures())
async def list_models(pane: Reading) -> ModelList:
    """Return the names that can be used as `model`."""
    return ModelList(data=tuple(Model(id=agent.name) for agent in await pane.agents.list()))


@router.head("/models/{model}", include_in_schema=False)
@router.get("/models/{model}", summary="Read an agent, as OpenAI's clients read a model", responses=failures(404))
async def read_model(pane: Reading, model: str) -> Model:
    """Return one of the names that can be used as `model`."""
    return Model(id=(await pane.agents.get(model)).name)
