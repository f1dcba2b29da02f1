"""Embeddings: `POST /v1/embeddings`, with the model by which items are selected."""

import base64
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import ConfigDict, Field
from starlette.responses import JSONResponse, Response

from windowpane.errors import EmbedderError
from windowpane.server.dependencies import Asking, Chatting
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai.errors import OpenAIRoute, UnsupportedError, failures
from windowpane.server.parameters import RequestBody
from windowpane.text.tokens import count

router = LazyRouter(prefix="/v1", tags=["openai"], route_class=OpenAIRoute)

MOST_TEXTS = 2048
"""How many texts one call may bring, as OpenAI has it."""

Text = Annotated[str, Field(min_length=1)]
Tokens = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


class EmbeddingRequest(RequestBody):
    """Texts to embed. Any `model` will do: there is one here, which the answer names."""

    model_config = ConfigDict(frozen=True)

    input: (
        Text
        | Tokens
        | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
        | Annotated[list[Tokens], Field(min_length=1, max_length=MOST_TEXTS)]
    )
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None


SHAPE = {
    "type": "object",
    "title": "EmbeddingList",
    "required": ["object", "data", "model", "usage"],
    "properties": {
        "object": {"const": "list"},
        "data": {"type": "array", "items": {"type": "object"}},
        "model": {"type": "string"},
        "usage": {"type": "object"},
    },
}


@router.post(
    "/embeddings",
    summary="Embed texts",
    response_model=None,
    responses={
        **failures(413, 415),
        200: {"description": "One vector for each text.", "content": {"application/json": {"schema": SHAPE}}},
    },
)
async def create_embeddings(pane: Chatting, caller: Asking, body: EmbeddingRequest) -> Response:
    """Return a vector of length 1 for each text. Tokens are read in OpenAI's vocabulary `cl100k_base`."""
    embedder = pane.engine.embedder
    if embedder is None:
        raise EmbedderError("this server has no embedding model")
    texts = await anyio.to_thread.run_sync(_texts, body)
    async with pane.engine.outside.recorder_for(caller.owner).apart():
        vectors = await embedder.embed(texts)
    size = vectors.shape[1]
    if body.dimensions not in (None, size):
        raise UnsupportedError("dimensions", f"{embedder.model} has {size} dimensions; ask for that many or for none.")
    data = [
        {"object": "embedding", "index": index, "embedding": _written(vector, body.encoding_format)}
        for index, vector in enumerate(vectors)
    ]
    tokens = await anyio.to_thread.run_sync(lambda: sum(map(count, texts)))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": data, "model": embedder.model, "usage": usage})


def _texts(body: EmbeddingRequest) -> list[str]:
    match body.input:
        case str(text):
            return [text]
        case [int(), *_] as tokens:
            return [_read(tokens)]
        case several:
            return [text if isinstance(text, str) else _read(text) for text in several]


def _read(tokens: Any) -> str:
    # The package ships no type stubs. Clients that count tokens before they send them have made them with this one.
    from bpe_openai import get_encoding  # pyright: ignore[reportMissingTypeStubs]

    encoding: Any = get_encoding("cl100k_base")
    try:
        return encoding.decode_bytes(tokens).decode("utf-8", "replace")
    except (KeyError, ValueError, OverflowError, IndexError) as error:
        raise UnsupportedError("input", f"These are no tokens of cl100k_base: {error}", "invalid_value") from None


def _written(vector: Any, form: Literal["float", "base64"]) -> Any:
    return vector.tolist() if form == "float" else base64.b64encode(vector.astype("<f4").tobytes()).decode()
