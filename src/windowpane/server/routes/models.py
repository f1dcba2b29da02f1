"""Models that turns can use."""

from typing import Annotated

from fastapi import APIRouter, Path

from windowpane.api.agents import ModelNames
from windowpane.server.dependencies import Reading
from windowpane.server.problems import problems

router = APIRouter(prefix="/api/models", tags=["models"])


@router.get("", summary="List models", responses=problems())
async def list_known_models(pane: Reading) -> ModelNames:
    """Return the names of models that are known to work here; others may work too."""
    return ModelNames(await pane.models.list())


@router.get("/{model:path}", status_code=204, summary="Check a model", responses=problems(422))
async def check_model(
    pane: Reading,
    model: Annotated[str, Path(max_length=200, description="`provider:model`.", examples=["openai:gpt-5-mini"])],
) -> None:
    """Answer without content when the model can be used. No model is called."""
    await pane.models.check(model)
