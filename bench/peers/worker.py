"""One store of conversations, ours or another's, does the work that `bench/peers.py` asks for and says what it cost.

`python worker.py STORE PLACE` takes commands. It runs in the environment where the store is installed: ours in
`.venv`, the others in `.venv/peers`. Every store gets the same messages; each is used as its own documentation shows.
"""

import asyncio
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

TEXT = "What about the invoices of last week? " * 11
FILL = (100, 5_000, 10_000)
SECONDS = 0.5
ONE_CALLER = 60
AT_EACH = 15
CALLERS, EACH = 64, 10
PROCESSES, APPENDS = 8, 100
TAIL = 20


class RefusedError(Exception):
    """The store said no: the message is not stored, and the caller knows it."""


class Conversations(Protocol):
    """What is asked of a store. `session` names a conversation."""

    fills: tuple[int, ...]
    """How long the conversations can be that it is measured on; filling some stores takes very long."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def begin(self, session: str) -> None: ...

    async def fill(self, session: str, count: int) -> None: ...

    async def append(self, session: str, text: str) -> None: ...

    async def tail(self, session: str) -> int:
        """Read the last messages and return how many came."""
        ...

    async def count(self, session: str) -> int: ...


class Windowpane:
    fills = FILL

    def __init__(self, place: str) -> None:
        from windowpane.context.events import MessageAdded, SessionCreated
        from windowpane.context.ids import SessionId
        from windowpane.stores.sessions import Sessions
        from windowpane.wiring import open_store

        self._open, self._place, self._states = open_store, place, Sessions
        self._id, self._said = SessionId, MessageAdded
        self._created = SessionCreated(agent="a", owner="o", settings={}, items=())
        self._keys = 0

    async def open(self) -> None:
        self._store = self._open(self._place)
        await self._store.__aenter__()
        self._sessions = self._states(self._store)

    async def close(self) -> None:
        await self._store.__aexit__(None, None, None)

    async def begin(self, session: str) -> None:
        await self._store.append(self._id(session), [self._created], expected_seq=0)

    async def fill(self, session: str, count: int) -> None:
        said = [self._said(role="user", content=message["content"]) for message in _messages(count)]
        for start in range(0, count, 500):
            await self._store.append(self._id(session), said[start : start + 500])

    async def append(self, session: str, text: str) -> None:
        self._keys += 1
        said = self._said(role="user", content=text)
        await self._store.append(self._id(session), [said], key=f"{os.getpid()} {self._keys}")

    async def tail(self, session: str) -> int:
        return len((await self._sessions.state(self._id(session))).recent[-TAIL:])

    async def count(self, session: str) -> int:
        return (await self._store.row(self._id(session))).last_seq - 1


class DjangoCache:
    """The whole conversation under one key: load, change, save."""

    fills = FILL

    def __init__(self, place: str) -> None:
        from django.conf import settings
        from django.core.cache import cache

        is_redis = place.startswith("redis:")
        backend = "redis.RedisCache" if is_redis else "filebased.FileBasedCache"
        location = place if is_redis else place.removeprefix("file:")
        settings.configure(
            CACHES={"default": {"BACKEND": f"django.core.cache.backends.{backend}", "LOCATION": location}}
        )
        self._cache = cache

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        self._cache.close()

    async def begin(self, session: str) -> None:
        self._cache.set(session, {"conversation_history": []}, 3600)

    async def fill(self, session: str, count: int) -> None:
        self._cache.set(session, {"conversation_history": _messages(count)}, 3600)

    async def append(self, session: str, text: str) -> None:
        if self.threaded:
            await asyncio.to_thread(self._append, session, text)
        else:
            self._append(session, text)

    threaded = False

    def _append(self, session: str, text: str) -> None:
        context = self._cache.get(session)
        context["conversation_history"].append(_message(text))
        self._cache.set(session, context, 3600)

    async def tail(self, session: str) -> int:
        return len(self._cache.get(session)["conversation_history"][-TAIL:])

    async def count(self, session: str) -> int:
        return len(self._cache.get(session)["conversation_history"])


class OpenAIAgents:
    """The Agents SDK's sessions; `make` opens one by its id."""

    fills = FILL

    def __init__(self, make: Callable[[str], Any]) -> None:
        self._make = make
        self._sessions: dict[str, Any] = {}

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        for session in self._sessions.values():
            closed = session.close() if hasattr(session, "close") else None
            if isinstance(closed, Awaitable):
                await closed
        self._sessions.clear()

    def _session(self, name: str) -> Any:
        if name not in self._sessions:
            self._sessions[name] = self._make(name)
        return self._sessions[name]

    async def begin(self, session: str) -> None:
        await self._session(session).get_items(limit=1)

    async def fill(self, session: str, count: int) -> None:
        await self._session(session).add_items(_messages(count))

    async def append(self, session: str, text: str) -> None:
        await self._session(session).add_items([_message(text)])

    async def tail(self, session: str) -> int:
        return len(await self._session(session).get_items(limit=TAIL))

    async def count(self, session: str) -> int:
        return len(await self._session(session).get_items())


def openai_sqlite(place: str) -> Conversations:
    from agents import SQLiteSession

    return OpenAIAgents(lambda name: SQLiteSession(name, place))


class OpenAISqlAlchemy(OpenAIAgents):
    """Their sessions over one SQLAlchemy engine."""

    def __init__(self, place: str) -> None:
        from agents.extensions.memory import SQLAlchemySession
        from sqlalchemy.ext.asyncio import create_async_engine

        self._create = lambda: create_async_engine(place)
        super().__init__(lambda name: SQLAlchemySession(name, engine=self._engine, create_tables=True))

    async def open(self) -> None:
        self._engine = self._create()

    async def close(self) -> None:
        self._sessions.clear()
        await self._engine.dispose()


def openai_redis(place: str) -> Conversations:
    from agents.extensions.memory import RedisSession

    return OpenAIAgents(lambda name: RedisSession.from_url(name, url=place))


class LangGraph:
    """A graph whose state is a list of messages; each update is a checkpoint."""

    fills = FILL

    def __init__(self, place: str) -> None:
        import operator
        from typing import Annotated, TypedDict

        from langgraph.graph import END, START, StateGraph

        if place.startswith("postgresql:"):
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as Saver
        else:
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver as Saver

        class State(TypedDict):
            messages: Annotated[list[dict[str, str]], operator.add]

        graph = StateGraph(State)
        graph.add_node("talk", lambda now: {})
        graph.add_edge(START, "talk")
        graph.add_edge("talk", END)
        self._graph, self._saver, self._place = graph, Saver, place

    async def open(self) -> None:
        self._opening = self._saver.from_conn_string(self._place)
        saver = await self._opening.__aenter__()
        await saver.setup()
        self._app = self._graph.compile(checkpointer=saver)

    async def close(self) -> None:
        await self._opening.__aexit__(None, None, None)

    async def begin(self, session: str) -> None:
        await self._app.aupdate_state(_config(session), {"messages": []}, as_node="talk")

    async def fill(self, session: str, count: int) -> None:
        await self._app.aupdate_state(_config(session), {"messages": _messages(count)}, as_node="talk")

    async def append(self, session: str, text: str) -> None:
        await self._app.aupdate_state(_config(session), {"messages": [_message(text)]}, as_node="talk")

    async def tail(self, session: str) -> int:
        return len((await self._app.aget_state(_config(session))).values["messages"][-TAIL:])

    async def count(self, session: str) -> int:
        return len((await self._app.aget_state(_config(session))).values["messages"])


class AgentDevelopmentKit:
    """Sessions of ADK's database service. A session that changed elsewhere must be read again: that is a refusal."""

    fills = (100, 300)

    def __init__(self, place: str) -> None:
        from google.adk.events import Event
        from google.adk.sessions import DatabaseSessionService
        from google.adk.sessions.base_session_service import GetSessionConfig
        from google.genai import types

        self._place, self._service_class, self._event = place, DatabaseSessionService, Event
        self._types, self._config = types, GetSessionConfig
        self._held: dict[str, Any] = {}

    async def open(self) -> None:
        self._service = self._service_class(self._place)

    async def close(self) -> None:
        self._held.clear()
        await self._service.close()

    async def begin(self, session: str) -> None:
        await self._service.create_session(app_name="a", user_id="u", session_id=session)

    async def fill(self, session: str, count: int) -> None:
        for _ in range(count):
            await self.append(session, TEXT)

    async def append(self, session: str, text: str) -> None:
        held = self._held.get(session) or await self._get(session)
        self._held[session] = held
        content = self._types.Content(role="user", parts=[self._types.Part(text=text)])
        try:
            await self._service.append_event(held, self._event(author="user", content=content))
        except Exception as error:
            self._held.pop(session, None)
            raise RefusedError from error

    async def _get(self, session: str, **config: int) -> Any:
        return await self._service.get_session(
            app_name="a", user_id="u", session_id=session, config=self._config(**config) if config else None
        )

    async def tail(self, session: str) -> int:
        return len((await self._get(session, num_recent_events=TAIL)).events)

    async def count(self, session: str) -> int:
        return len((await self._get(session)).events)


STORES: dict[str, Callable[[str], Conversations]] = {
    "windowpane": Windowpane,
    "django": DjangoCache,
    "openai-sqlite": openai_sqlite,
    "openai-sqlalchemy": OpenAISqlAlchemy,
    "openai-redis": openai_redis,
    "langgraph": LangGraph,
    "adk": AgentDevelopmentKit,
}


def main(name: str, place: str) -> None:
    """Answer commands, one a line, each with one line of JSON."""
    warnings.simplefilter("ignore")
    store = STORES[name](place)
    with asyncio.Runner() as runner:
        for command in map(str.strip, sys.stdin):
            # Processes are forked before anything is open in this one.
            answer = contended(store) if command == "contended" else runner.run(WORK[command](store))
            print(json.dumps(answer), flush=True)


async def opened(store: Conversations) -> list[int]:
    """Open the store, make conversations of every length, and return the lengths."""
    await store.open()
    await store.begin("one")
    for count in store.fills:
        await store.begin(f"long {count}")
        await store.fill(f"long {count}", count)
    if isinstance(store, DjangoCache):
        store.threaded = False
    return list(store.fills)


async def appended(store: Conversations) -> list[float]:
    """Return the seconds that each of some appends took, by one caller to one conversation."""
    return await costs_of(lambda: store.append("one", TEXT), ONE_CALLER)


async def at_each(store: Conversations) -> dict[int, float]:
    """Return what one append takes in conversations of each length."""
    return {
        count: min(await costs_of(lambda count=count: store.append(f"long {count}", TEXT), AT_EACH))
        for count in store.fills
    }


async def tail(store: Conversations) -> list[float]:
    """Return the seconds that reading the last messages of a long conversation takes."""
    name = f"long {store.fills[min(1, len(store.fills) - 1)]}"
    assert await store.tail(name) == TAIL
    return await costs_of(lambda: store.tail(name), AT_EACH)


async def closed(store: Conversations) -> None:
    await store.close()


async def costs_of(work: Callable[[], Awaitable[object]], times: int) -> list[float]:
    costs: list[float] = []
    until = time.perf_counter() + SECONDS
    while len(costs) < times and (time.perf_counter() < until or len(costs) < 3):
        started = time.perf_counter()
        await work()
        costs.append(time.perf_counter() - started)
    return costs


async def many_callers(store: Conversations) -> dict[str, float]:
    """Return the appends a second of many callers in one process, and how many acknowledged ones are not there."""
    if isinstance(store, DjangoCache):
        store.threaded = True
    name = f"many {time.time_ns()}"
    await store.begin(name)
    stored = 0
    until = time.perf_counter() + SECONDS * 4

    async def call() -> None:
        nonlocal stored
        for _ in range(EACH):
            if time.perf_counter() > until:
                return
            try:
                await store.append(name, TEXT)
                stored += 1
            except RefusedError:
                pass

    started = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(CALLERS)))
    took = time.perf_counter() - started
    if isinstance(store, DjangoCache):
        store.threaded = False
    return {"rate": stored / took, "lost": stored - await store.count(name)}


def contended(store: Conversations) -> dict[str, Any]:
    """Let several processes append to one conversation at once; tell what was acknowledged and what is there."""

    name = f"shared {time.time_ns()}"

    async def begin() -> None:
        await store.open()
        await store.begin(name)
        await store.close()

    async def count() -> int:
        await store.open()
        there = await store.count(name)
        await store.close()
        return there

    asyncio.run(begin())
    fork = multiprocessing.get_context("fork")
    ready, results = fork.Barrier(PROCESSES + 1), fork.Queue()
    processes = [fork.Process(target=contender, args=(store, name, ready, results)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    ready.wait()
    started = time.perf_counter()
    acknowledged, refused = (sum(column) for column in zip(*(results.get() for _ in processes), strict=True))
    took = time.perf_counter() - started
    for process in processes:
        process.join()
    there = asyncio.run(count())
    return {
        "rate": acknowledged / took,
        "acknowledged": acknowledged,
        "refused": refused,
        "survived": there,
        "lost": acknowledged - there,
    }


def contender(store: Conversations, name: str, ready: Any, results: Any) -> None:
    """Be one of the processes."""

    async def work() -> tuple[int, int]:
        acknowledged = refused = 0
        await store.open()
        ready.wait()
        for _ in range(APPENDS):
            try:
                await store.append(name, TEXT)
                acknowledged += 1
            except Exception:  # noqa: BLE001 - whatever it says, the message is not stored and its sender knows
                refused += 1
        await store.close()
        return acknowledged, refused

    results.put(asyncio.run(work()))


WORK: dict[str, Callable[[Conversations], Coroutine[Any, Any, Any]]] = {
    "open": opened,
    "append": appended,
    "long": at_each,
    "tail": tail,
    "many": many_callers,
    "close": closed,
}


def _message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _messages(count: int) -> list[dict[str, str]]:
    return [_message(f"{number} {TEXT}") for number in range(count)]


def _config(session: str) -> Any:
    return {"configurable": {"thread_id": session}}


if __name__ == "__main__":
    main(*sys.argv[1:])
