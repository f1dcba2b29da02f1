"""Objects in an S3-compatible service or in a folder, by the library `obstore`.

s3://bucket/prefix?endpoint=https://host&region=name     any S3-compatible service; AWS without an endpoint
file:///folder                                           a folder that all workers share

Credentials are those of the environment, as for every program that uses AWS: AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, or the role of the machine. An endpoint with http:// is not encrypted on its way.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

from windowpane.errors import InvalidSettingError, StoreUnavailableError
from windowpane.stores.blobs.base import Objects

_ANSWER = timedelta(seconds=30)
_RETRIES: dict[str, Any] = {"max_retries": 3, "retry_timeout": _ANSWER}


class ObjectStore(Objects):
    """Objects where a URL says.

    Raises:
        InvalidSettingError: the URL says something that cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._shown = url.partition("?")[0]
        # The library types its stores by overloads for each scheme.
        self._store = cast("Any", _opened(url))

    async def put(self, name: str, body: bytes) -> None:
        """Keep bytes; see `Objects.put`."""
        with self._translated_errors():
            await obstore.put_async(self._store, name, body)

    async def get(self, name: str) -> bytes | None:
        """Return the bytes; see `Objects.get`."""
        try:
            with self._translated_errors():
                found = await obstore.get_async(self._store, name)
                return bytes(await found.bytes_async())
        except FileNotFoundError:
            return None

    async def delete(self, names: Sequence[str]) -> None:
        """Remove objects; see `Objects.delete`."""
        for name in names:
            try:
                with self._translated_errors():
                    await obstore.delete_async(self._store, name)
            except FileNotFoundError:
                continue

    async def list(self) -> AsyncGenerator[tuple[str, datetime]]:
        """Yield every name, and when it was put; see `Objects.list`."""
        with self._translated_errors():
            async for page in cast("AsyncIterator[Any]", cast("Any", obstore).list(self._store)):
                for found in page:
                    yield found["path"], found["last_modified"]

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            # Only the first line: the library adds what it was made of, with the address of each try.
            why = str(error).strip().partition("\n")[0]
            raise StoreUnavailableError(f"{self._shown}: {why}; see that the service runs and lets us in") from error


def _opened(url: str) -> object:
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query))
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/") and not given:
        folder = Path(unquote(parts.path))
        return LocalStore(folder, mkdir=True)
    if parts.scheme == "s3" and parts.netloc and not given.keys() - {"endpoint", "region"}:
        endpoint = given.get("endpoint")
        options: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
        open_s3 = cast("Any", S3Store)
        return open_s3(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            region=given.get("region", "us-east-1"),
            client_options={"allow_http": (endpoint or "").startswith("http://"), "timeout": _ANSWER},
            retry_config=_RETRIES,
            **options,
        )
    raise InvalidSettingError(
        "blobs_url", "write s3://bucket/prefix?endpoint=https://host&region=name, or file:///absolute/folder"
    )
