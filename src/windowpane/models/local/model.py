"""The model `local`: a server of its own on loopback, started by the first call and spoken to like any other."""

import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from threading import Lock

import anyio.to_thread

from windowpane.context.ids import BlobHash
from windowpane.context.request import CallSettings, OfferedTool, ReplyOptions, RequestMessage
from windowpane.errors import ModelUnavailableError
from windowpane.models.base import LOCAL, NO_FILES, ChatModel, ModelStep, ModelText


class LocalModelServer:
    """The process that serves the weights. It ends with this one."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self._process: subprocess.Popen[str] | None = None
        self._starting = Lock()

    @property
    def url(self) -> str:
        """Return where it speaks OpenAI's protocol."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def start(self) -> None:
        """Start it, unless it runs, and wait until it answers.

        Raises:
            ModelUnavailableError: it does not start.
        """
        if self._process is None or self._process.poll() is not None:
            await anyio.to_thread.run_sync(self._start)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def _start(self) -> None:
        with self._starting:
            if self._process is not None and self._process.poll() is None:
                return
            self.close()
            command = [sys.executable, "-m", "windowpane.models.local.server", "--port", str(self._port)]
            self._process = process = subprocess.Popen(  # noqa: S603 - our own module, with a number
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            said = process.stdout.readline() if process.stdout is not None else ""
            if not said.startswith("http"):
                self.close()
                raise ModelUnavailableError(f"{LOCAL} does not start: llama.cpp ended before it could answer")


class LocalModel:
    """A model that is served on this machine, and served only when it is called."""

    def __init__(self, server: LocalModelServer, connect: Callable[[str], ChatModel]) -> None:
        """Take its server, and what makes a model of an address."""
        self._server = server
        self._model = connect(server.url)

    @property
    def name(self) -> str:
        """Return `local`."""
        return LOCAL

    def remember(self, text: str, own_words: str) -> None:
        """Take back what the model said before; see `ChatModel.remember`."""
        self._model.remember(text, own_words)

    def ignored(self, options: ReplyOptions) -> tuple[str, ...]:
        """Return the names of those sampling parameters that it does not take."""
        return self._model.ignored(options)

    async def stream(
        self,
        messages: Sequence[RequestMessage],
        tools: Sequence[OfferedTool],
        settings: CallSettings,
        files: Mapping[BlobHash, str] = NO_FILES,
    ) -> AsyncGenerator[ModelText | ModelStep]:
        """Call the model once; the first call waits until the weights are loaded."""
        await self._server.start()
        async with aclosing(self._model.stream(messages, tools, settings, files)) as events:
            async for event in events:
                yield event
