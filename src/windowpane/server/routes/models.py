"""Models that turns can use, and the keys of their providers."""

from typing import Annotated

from fastapi import Path
from pydantic import ConfigDict, Field, SecretStr

from windowpane.api.models import KnownModels
from windowpane.server.dependencies import Managing, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import RequestBody
from windowpane.server.problems import BODY, problems

router = LazyRouter(prefix="/api", tags=["models"])

Provider = Annotated[str, Path(max_length=100, description="The provider's name.", examples=["openai"])]


@router.get("/models", summary="List models", responses=problems())
async def list_known_models(pane: Reading) -> KnownModels:
    """Return the names of models that are known to work here, and every provider with what it lacks."""
    return KnownModels(await pane.models.list(), await pane.models.providers())


@router.get("/models/{model:path}", status_code=204, summary="Check a model", responses=problems(422))
async def check_model(
    pane: Reading,
    model: Annotated[str, Path(max_length=200, description="`provider:model`.", examples=["openai:gpt-5-mini"])],
) -> None:
    """Answer without content when the model can be used. No model is called."""
    await pane.models.check(model)


class GivenKey(RequestBody):
    """A key of a provider."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: Annotated[SecretStr, Field(min_length=1, max_length=2000)]


@router.put("/providers/{provider}/key", status_code=204, summary="Give a provider's key", responses=problems(*BODY))
async def put_provider_key(pane: Managing, provider: Provider, body: GivenKey) -> None:
    """Keep a key with the server's data. It counts from the next call on, and no answer ever has it."""
    await pane.models.keep_key(provider, body.key.get_secret_value())


@router.delete("/providers/{provider}/key", status_code=204, summary="Remove a provider's key", responses=problems(422))
async def delete_provider_key(pane: Managing, provider: Provider) -> None:
    """Forget the key that was given. One in the server's environment stays."""
    await pane.models.remove_key(provider)
