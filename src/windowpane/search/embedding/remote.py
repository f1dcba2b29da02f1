"""Embeddings from any endpoint that speaks OpenAI's protocol, for those who prefer another model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx2
import numpy as np

from windowpane.calls.recorder import HeldCalls, recording_embedding
from windowpane.calls.transport import RedirectedError
from windowpane.errors import EndpointError
from windowpane.search.embedding.base import Vectors
from windowpane.text.redact import shown_address

TEXTS_AT_ONCE = 64


class RemoteEmbedder:
    """`POST {base_url}/embeddings`, a limited number of texts at a time.

    The client belongs to the caller, who sets its time-outs and closes it. `outside` says what keeps the calls that
    are made for no turn.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        base_url: str,
        model: str,
        api_key: str | None = None,
        dimensions: int | None = None,
        outside: Callable[[], HeldCalls | None] = lambda: None,
    ) -> None:
        self._client = client
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._shown = shown_address(self._url)
        self._name = model
        self._dimensions = dimensions
        self._outside = outside
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    @property
    def model(self) -> str:
        """Return the name that vectors are cached under: the same model elsewhere may not be the same."""
        return f"{self._shown} {self._name} {self._dimensions or ''}".rstrip()

    @property
    def language(self) -> str | None:
        """Return None: an endpoint does not say which languages its model understands."""
        return None

    async def vocabulary(self) -> Mapping[str, int]:
        """Return none: an endpoint does not show its vocabulary."""
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text.

        Raises:
            EndpointError: it cannot be reached, refuses, or answers something else.
        """
        groups = [texts[i : i + TEXTS_AT_ONCE] for i in range(0, len(texts), TEXTS_AT_ONCE)]
        rows = [vector for group in groups for vector in await self._embed(group)]
        return np.array(rows, np.float32)

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        body: dict[str, Any] = {
            "model": self._name,
            "input": [text.encode(errors="replace").decode() for text in texts],
            "encoding_format": "float",
        }
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        try:
            async with recording_embedding(self._name, self._outside):
                response = await self._client.post(self._url, json=body, headers=self._headers)
            response.raise_for_status()
            answer: Any = response.json()
        except httpx2.HTTPStatusError as error:
            raise EndpointError(self._shown, f"HTTP {error.response.status_code}") from error
        except RedirectedError as error:
            why = f"{error}; redirects are not followed, so that no key goes to another server: set embeddings_url"
            raise EndpointError(self._shown, f"{why} to the new address") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise EndpointError(self._shown, str(error) or type(error).__name__) from error
        except ValueError as error:
            raise EndpointError(self._shown, "the answer is not JSON") from error
        return self._vectors(answer, len(texts))

    def _vectors(self, answer: Any, count: int) -> Vectors:
        try:
            rows: Sequence[Mapping[str, Any]] = sorted(answer["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], np.float32)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise EndpointError(self._shown, "the answer holds no embeddings") from error
        if vectors.ndim != 2 or len(vectors) != count:
            raise EndpointError(self._shown, f"{count} texts were sent and {len(vectors)} vectors came back")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or not (lengths > 0).all():
            raise EndpointError(self._shown, "a vector has no direction")
        return vectors / lengths
