from collections.abc import AsyncIterator

import httpx2
import numpy as np
import pytest
from tests.search.endpoint import Endpoint

from patience import PATIENCE_S
from windowpane.search.embedding.cached import CachedEmbedder
from windowpane.search.embedding.remote import RemoteEmbedder

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        yield client


async def test_a_text_is_embedded_once_and_its_vector_stays_the_same(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    embedder = RemoteEmbedder(client, endpoint.url, "m")
    remembered = CachedEmbedder(embedder)
    await remembered.embed(["one", "two"])
    endpoint.texts.clear()

    again = await remembered.embed(["three", "two", "three", "one"])

    assert endpoint.texts == ["three"]
    assert np.array_equal(again, await embedder.embed(["three", "two", "three", "one"]))


async def test_what_was_remembered_longest_is_forgotten_first(endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
    remembered = CachedEmbedder(RemoteEmbedder(client, endpoint.url, "m"), kept=2)
    await remembered.embed(["one", "two", "three"])
    endpoint.texts.clear()

    await remembered.embed(["one", "three"])

    assert endpoint.texts == ["one"]
