"""Have erased text leave the servers' append-only files too.

A server keeps every command in its file until it rewrites the file from what it holds. It is asked to do that after
an erasure: at once, and then at most once a minute, because it costs as much as everything the server holds.
"""

import asyncio
from functools import partial

from windowpane.errors import StoreUnavailableError
from windowpane.remarks import get_logger
from windowpane.stores.redis.nodes import Nodes
from windowpane.supervise import keep_running

_AT_MOST_EVERY_S = 60.0
_ASK_AGAIN_S = 0.1
_CLOSING_S = 5.0

log = get_logger()


class AofRewrite:
    """Asks all servers to rewrite their append-only files."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._erasures = 0
        self._covered = 0
        self._asking: asyncio.Task[None] | None = None

    def ask(self) -> None:
        """Have the files rewritten soon."""
        self._erasures += 1
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(
                keep_running("redis.rewrite", partial(self._ask_until_covered, _AT_MOST_EVERY_S))
            )

    async def close(self) -> None:
        """Ask now for what is still due, but wait no longer than a moment for servers that are busy with it."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        try:
            async with asyncio.timeout(_CLOSING_S):
                await self._ask_until_covered(0)
        except TimeoutError:
            log.warning("redis.erased_text_remains_in_file", why="the server is busy writing it")

    async def _ask_until_covered(self, pause_s: float) -> None:
        while self._covered < self._erasures:
            # What is erased from now on needs another one.
            erasures = self._erasures
            if await self._ask_all():
                self._covered = erasures
                await asyncio.sleep(pause_s)
            else:
                await asyncio.sleep(_ASK_AGAIN_S)

    async def _ask_all(self) -> bool:
        """Ask every server; False when one is still busy with an earlier wish."""
        done = True
        for address in self._nodes.primaries:
            try:
                await self._nodes.run_at(address, (b"BGREWRITEAOF",))
            except StoreUnavailableError as error:
                if "in progress" in str(error):
                    done = False
                else:
                    log.warning("redis.erased_text_remains_in_file", why=str(error))
        return done
