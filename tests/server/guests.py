"""A server that others can reach: everybody needs a token, and there are some."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from server.place import served
from windowpane.callers import Scope, TokenFile
from windowpane.testing import World


@dataclass(frozen=True)
class Place:
    """A running server, its tokens, and a client without any."""

    client: httpx2.AsyncClient
    tokens: TokenFile

    def token(self, owner: str, scope: Scope = "manage") -> str:
        return self.tokens.create(owner, [scope])[1]

    def headers(self, owner: str, scope: Scope = "manage") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(owner, scope)}"}

    async def session(self, headers: dict[str, str]) -> str:
        made = await self.client.post("/api/sessions", json={}, headers=headers)
        assert made.status_code == 201, made.text
        return made.json()["id"]


@asynccontextmanager
async def guarded(world: World, **options: Any) -> AsyncGenerator[Place]:
    tokens = TokenFile(world.root.parent / "tokens.json")
    options = {"token_needed": True, "hosts": None, **options}
    async with served(world, tokens=tokens, **options) as client:
        yield Place(client, tokens)
