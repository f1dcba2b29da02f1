"""Models, as Anthropic's clients list them: the agents."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from windowpane.server.anthropic.errors import AnthropicRoute, anthropic_failures
from windowpane.server.dependencies import Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai.models import CREATED

router = LazyRouter(prefix="/anthropic/v1", tags=["anthropic"], route_class=AnthropicRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicModel:
    """An agent, under its name."""

    id: str
    display_name: str
    type: Literal["model"] = "model"
    created_at: str = datetime.fromtimestamp(CREATED, UTC).isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicModelList:
    """Every agent."""

    data: tuple[AnthropicModel, ...]
    has_more: bool = False
    first_id: str | None
    last_id: str | None


@router.head("/models", include_in_schema=False)
@router.get("/models", summary="List agents, as Anthropic's clients list models", responses=anthropic_failures())
async def list_anthropic_models(pane: Reading) -> AnthropicModelList:
    """Return the names that can be used as `model`."""
    data = tuple(AnthropicModel(id=agent.name, display_name=agent.name) for agent in await pane.agents.list())
    ends = (data[0].id, data[-1].id) if data else (None, None)
    return AnthropicModelList(data=data, first_id=ends[0], last_id=ends[1])


@router.head("/models/{model}", include_in_schema=False)
@router.get(
    "/models/{model}", summary="Read an agent, as Anthropic's clients read a model", responses=anthropic_failures(404)
)
async def read_anthropic_model(pane: Reading, model: str) -> AnthropicModel:
    """Return one of the names that can be used as `model`."""
    name = (await pane.agents.get(model)).name
    return AnthropicModel(id=name, display_name=name)
