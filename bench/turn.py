"""What a turn costs beside the model: processor time, of it the embedding and the event loop, and what is waited for.

A model in the process answers with 400 characters at once. Each turn asks something else, many lean on the turn before.
`waited` is the processor time until the model is called: what a user waits for. `all` counts what is done after the
reply too. The model streams its words through pydantic-ai, as every model does; what that takes by itself is in every
turn and is printed below. With `--messages` so many were said before, and their vectors are there. The last
measurement is of several sessions that talk at once (`--sessions`), as in a worker that has something to do: each turn
costs less then, because the processor's caches are warm and one wake-up serves several of them. Run it with
`.venv/bin/python bench/turn.py [--items 100] [--messages 0 1000] [--sessions 8] [--turns 40] [--no-selection]`.
Processor time, so that a busy machine changes little; medians, and means of several sessions.
"""

import argparse
import asyncio
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from office import ANSWER, QUESTIONS, said, write_agent
from windowpane.context.events import MessageAdded, Recorded, RequestBuilt
from windowpane.context.request import CallSettings, RequestMessage
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Reply, ScriptedModel
from windowpane.search.embedding.minilm import MiniLM
from windowpane.settings import Settings
from windowpane.wiring import open_engine

QUIET_S = 0.05
REST_S = 1.0
"""A past that was brought in is embedded in small steps, with rests between them that are shorter than this."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--messages", type=int, nargs="+", default=[0, 1000])
    parser.add_argument("--sessions", type=int, default=8, help="so many talk at once in the last measurement; 0: none")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument(
        "--no-selection", action="store_true", help="no items are selected; what was said is still embedded for recall"
    )
    parser.add_argument("--store", default="")
    options = parser.parse_args()
    spent = Spent()
    spent.watch()
    for messages in options.messages:
        asyncio.run(measure(options, messages, spent))
    if options.sessions:
        asyncio.run(measure_together(options, spent))
    alone = asyncio.run(model_alone(options.turns))
    print(f"\nThe model by itself: {alone * 1000:.1f} ms of each turn.")


async def measure(options: Any, messages: int, spent: "Spent") -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_agent(folder / "agents" / "bench", options.items, search=not options.no_selection)
        before_it = messages // 2
        answers = [Reply(said(ANSWER, turn)) for turn in range(before_it, before_it + options.turns + 1)]
        models = PydanticModels(scripts=[ScriptedModel("bench", answers)])
        settings = Settings(data=folder, store_url=options.store or None)
        async with open_engine(settings, models=models) as engine:
            session = (await engine.sessions.create(agent="bench", settings={"model": "scripted:bench"})).id
            for turn in range(before_it):
                question, answer = said(QUESTIONS[turn % len(QUESTIONS)], turn), said(ANSWER, turn)
                talk = [MessageAdded(role="user", content=question), MessageAdded(role="assistant", content=answer)]
                await engine.conversations.add_all(session, talk)
            rows: list[tuple[float, ...]] = []
            for turn in range(before_it, before_it + options.turns):
                if len(rows) == 1:
                    await spent.quiet(REST_S)
                before, waited = spent.now(), spent.now()
                async for event in engine.turn(session, said(QUESTIONS[turn % len(QUESTIONS)], turn), wait_s=60):
                    if isinstance(event, Recorded) and isinstance(event.event, RequestBuilt):
                        waited = spent.now()
                await spent.quiet(QUIET_S)
                rows.append((*(waited - before), *(spent.now() - before)))
    show(options, messages, np.array(rows[options.turns // 4 :]) * 1000)


async def measure_together(options: Any, spent: "Spent") -> None:
    """Measure turns of sessions that talk at once, after a few of each that are not counted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_agent(folder / "agents" / "bench", options.items, search=not options.no_selection)
        before_it = options.turns // 4
        count = options.sessions * (options.turns + before_it)
        models = PydanticModels(scripts=[ScriptedModel("bench", [Reply(said(ANSWER, turn)) for turn in range(count)])])
        settings = Settings(data=folder, store_url=options.store or None)
        async with open_engine(settings, models=models) as engine:
            made = [await engine.sessions.create(agent="bench") for _ in range(options.sessions)]

            async def talk(number: int, turns: range) -> None:
                for turn in turns:
                    # Every message is another one: none is embedded for two sessions.
                    question = said(QUESTIONS[turn % len(QUESTIONS)], number * 1000 + turn)
                    async for _ in engine.turn(made[number].id, question, wait_s=60):
                        pass

            async def all_talk(turns: range) -> None:
                await asyncio.gather(*(talk(number, turns) for number in range(options.sessions)))

            await all_talk(range(before_it))
            await spent.quiet(REST_S)
            before = spent.now()
            await all_talk(range(before_it, before_it + options.turns))
            await spent.quiet(QUIET_S)
            everything, embedding, loop = (spent.now() - before) * 1000 / (options.sessions * options.turns)
    print(f"\n{options.items} items, {options.sessions} sessions at once, {options.turns} turns each; processor ms\n")
    print("| a turn | all | of it embedding | event loop | the rest beside embedding |")
    print("|---|---|---|---|---|")
    print(f"| mean | {everything:.1f} | {embedding:.1f} | {loop:.1f} | {everything - embedding:.1f} |")


async def model_alone(turns: int) -> float:
    """Return the processor time in which the model says its answer when nothing else is done."""
    model = ScriptedModel("alone", [Reply(said(ANSWER, turn)) for turn in range(turns)])
    message = RequestMessage(role="user", content=said(QUESTIONS[0], 0), part="message")
    spent: list[float] = []
    for _ in range(turns):
        before = time.process_time()
        async for _ in model.stream((message,), (), CallSettings(model="scripted:alone")):
            pass
        spent.append(time.process_time() - before)
    return median(spent)


class Spent:
    """Processor time so far: of the process, of embedding, of the event loop's thread."""

    def __init__(self) -> None:
        self._embedding = 0.0
        self._lock = threading.Lock()

    def watch(self) -> None:
        embed = MiniLM.embed_now

        def timed(model: MiniLM, texts: Sequence[str]) -> NDArray[np.float32]:
            before = time.thread_time()
            try:
                return embed(model, texts)
            finally:
                with self._lock:
                    self._embedding += time.thread_time() - before

        MiniLM.embed_now = timed  # type: ignore[method-assign]

    def now(self) -> NDArray[np.float64]:
        return np.array((time.process_time(), self._embedding, time.thread_time()))

    async def quiet(self, for_s: float) -> None:
        """Wait until nothing was done for so long."""
        while True:
            before = time.process_time()
            await asyncio.sleep(for_s)
            if time.process_time() - before < 0.004:
                return


def show(options: Any, messages: int, rows: NDArray[np.float64]) -> None:
    size = f"{options.items} items, {messages} messages before, {options.turns} turns"
    print(f"\n{size}, answers of {len(said(ANSWER, 0))} characters; processor ms\n")
    print("| a turn | waited | of it embedding | all | of it embedding | event loop | the rest beside embedding |")
    print("|---|---|---|---|---|---|---|")
    waited, waited_embedding, _, everything, embedding, loop = rows.T
    # The rest of each turn, and then the median: turns differ most in what they embed.
    columns = np.array((waited, waited_embedding, everything, embedding, loop, everything - embedding))
    for name, share in (("median", 50), ("95 of 100", 95)):
        parts = np.percentile(columns, share, axis=1)
        print(f"| {name} | {' | '.join(f'{part:.1f}' for part in parts)} |")


if __name__ == "__main__":
    main()
