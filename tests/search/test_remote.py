from collections.abc import AsyncIterator

import httpx2
import numpy as np
import pytest
from tests.search.endpoint import Endpoint, embedding

from patience import PATIENCE_S
from windowpane.errors import EndpointError
from windowpane.search.embedding.remote import TEXTS_AT_ONCE, RemoteEmbedder

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        yield client


async def test_vectors_come_in_the_order_of_the_texts_and_have_length_1(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    texts = [f"text number {i}" for i in range(TEXTS_AT_ONCE + 6)]

    vectors = await RemoteEmbedder(client, endpoint.url, "some-model").embed(texts)

    expected = np.array([embedding(text) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(vectors, expected, atol=1e-6)
    assert [len(request["input"]) for request in endpoint.requests] == [TEXTS_AT_ONCE, 6]


async def test_the_key_and_the_wanted_dimensions_are_sent(endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
    await RemoteEmbedder(client, f"{endpoint.url}/", "m", api_key="secret", dimensions=64).embed(["a"])

    assert endpoint.requests == [{"model": "m", "input": ["a"], "encoding_format": "float", "dimensions": 64}]
    assert endpoint.authorization == ["Bearer secret"]


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("refuses", "HTTP 503"),
        ("no json", "the answer is not JSON"),
        ("no vectors", "the answer holds no embeddings"),
        ("too few", "2 texts were sent and 1 vectors came back"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_that_says_why(
    endpoint: Endpoint, client: httpx2.AsyncClient, behaviour: str, why: str
) -> None:
    endpoint.behaviour = behaviour  # pyright: ignore[reportAttributeAccessIssue] (the parameters above are its values)

    with pytest.raises(EndpointError, match=why):
        await RemoteEmbedder(client, endpoint.url, "m").embed(["a", "b"])


async def test_an_endpoint_that_is_down_is_an_error(client: httpx2.AsyncClient) -> None:
    with pytest.raises(EndpointError, match=r"127\.0\.0\.1:9"):
        await RemoteEmbedder(client, "http://127.0.0.1:9/v1", "m").embed(["a"])
