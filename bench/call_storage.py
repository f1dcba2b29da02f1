"""What recording model calls costs: bytes that a turn of ten calls stores, and processor time for each call.

A real turn with a prompt of 30 kB calls a tool nine times, each result 1 kB or 4 kB, against a local server that speaks
OpenAI's protocol and keeps the bodies. They are then recorded again, alone: every byte that the recorder hands to the
store is counted once, also texts that the record of the built request would share. "New" are the bytes of a body that
are not at the beginning or the end of the one before; "kept" is what a store writes of texts and events, long texts
compressed. The results are words at random, so that they are no easier to compress than prose. The second turn finds
the first one's texts in the store, and goes on from its last call.

Run it with `.venv/bin/python bench/call_storage.py`; the environment's TMPDIR chooses the disk.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from windowpane.calls.recorder import CallRecorder
from windowpane.calls.transport import LEFT_OUT
from windowpane.context.calls import WireHead
from windowpane.context.events import CallEnded, Event, SessionCreated
from windowpane.context.ids import BlobHash, SessionId, new_session_id
from windowpane.context.messages import Usage
from windowpane.stores.codec import encode_event
from windowpane.stores.packing import pack
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain
from windowpane.tools.functions import FunctionTool

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from wire import openai_chat
from wire.reply import WireCall, WireReply
from wire.server import Asked, running

CALLS, TURNS, RULES, ROUNDS = 10, 2, 33, 30
RULE = "Rule {0}: section {0} of the handbook says how a case of kind {0} is answered, by whom and until when. "
WORDS = tuple(
    a + b + c for a in ("ka", "mo", "ri", "te", "su", "lan") for b in ("", "do", "vi", "pe") for c in ("n", "ro", "s")
)

Sent = tuple[WireHead, bytes]


async def sent_calls(directory: Path, lines: int) -> list[list[Sent]]:
    """Run real turns, and return the requests of each as the server got them. A tool's result has so many lines."""
    world = World(directory / "agents")
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nfinders: false\n")
    for number in range(RULES):
        world.rule(f"rule-{number}", RULE.format(number) * 9, include="always")
    chance = Random(lines)
    results = {line: " ".join(chance.choices(WORDS, k=8 * lines)) for line in range(TURNS * CALLS)}

    async def read(arguments: Mapping[str, Any]) -> str:
        return results[arguments["line"]]

    world.toolbox.put("files", [FunctionTool(name="read", run=read, permission="not_required")])
    turns: list[list[Sent]] = []
    async with running() as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            for turn in range(TURNS):
                for step in range(CALLS - 1):
                    line = turn * CALLS + step
                    call = WireCall(f"call_{line}", "files__read", (json.dumps({"line": line}),))
                    server.add(openai_chat.answer(WireReply(("Let me see.",), calls=(call,))))
                server.add(openai_chat.answer(WireReply(("That is all of it. " * 10,))))
                before = len(server.asked)
                await drain(pane.turn(session.id, f"Read the files of part {turn}, please."))
                turns.append([(_head(server.url, asked), asked.raw) for asked in server.asked[before:]])
    return turns


def _head(url: str, asked: Asked) -> WireHead:
    headers = tuple(each for each in asked.headers.items() if each[0].lower() not in LEFT_OUT)
    return WireHead(method=asked.method, url=url + asked.path, headers=headers)


def new_bytes(body: bytes, before: bytes) -> int:
    """Return how many bytes of a body are not at the beginning or the end of the one before."""
    most = min(len(body), len(before))
    head = next((at for at in range(most) if body[at] != before[at]), most)
    tail = next((at for at in range(most - head) if body[-1 - at] != before[-1 - at]), most - head)
    return len(body) - head - tail


@dataclass
class Counted:
    """A store that only counts: events, and texts that it does not have yet."""

    events: int = 0
    texts: int = 0
    packed: int = 0
    known: set[BlobHash] = field(default_factory=set[BlobHash])

    async def store(self, events: Sequence[Event], blobs: Mapping[BlobHash, str]) -> None:
        self.events += sum(len(encode_event(event)) for event in events)
        new = [text.encode() for name, text in blobs.items() if name not in self.known]
        self.texts += sum(map(len, new))
        self.packed += sum(len(pack(text)) for text in new)
        self.known |= blobs.keys()


async def record(recorder: CallRecorder, calls: Sequence[Sent]) -> None:
    """Record calls and their ends."""
    for step, (head, body) in enumerate(calls, 1):
        recorder.begin_step(step, "openai:gpt-4o", 7_000)
        call = await recorder.sent(head, body)
        usage = Usage(7_000, 20)
        recorder.ended(CallEnded(id=call, address=head.url, outcome="complete", status=200, usage=usage))


async def report_bytes(turns: Sequence[Sequence[Sent]]) -> None:
    """Print what each turn stores."""
    counted = Counted()
    before, last = b"", None
    names = ("sent", 9), ("new", 8), ("texts", 8), ("events", 8), ("ratio", 7), ("kept", 8), ("ratio", 7)
    print(f"{'bytes':10} {'calls':>6}", *(f"{name:>{width}}" for name, width in names))
    for number, calls in enumerate(turns, 1):
        new = 0
        for _, body in calls:
            new += new_bytes(body, before)
            before = body
        counted.events = counted.texts = counted.packed = 0
        recorder = CallRecorder(counted.store, purpose="answer", turn=number, last=last)
        await record(recorder, calls)
        last = recorder.last
        await counted.store(recorder.take(), {})
        sent, given = sum(len(body) for _, body in calls), counted.texts + counted.events
        kept = counted.packed + counted.events
        numbers = f"{sent:9,} {new:8,} {counted.texts:8,} {counted.events:8,} {given / new:7.2f}"
        numbers += f" {kept:8,} {kept / new:7.2f}"
        print(f"{f'turn {number}':10} {len(calls):6} {numbers}")


async def report_time(calls: Sequence[Sent], directory: Path) -> None:
    """Print the processor time of all threads for one call: the recorder alone, and with the append to SQLite."""
    alone: list[float] = []
    stored: list[float] = []

    async def forget(events: Sequence[Event], blobs: Mapping[BlobHash, str]) -> None:
        pass

    async with SQLiteStore(directory / "calls.db", "NORMAL") as store:
        for _ in range(ROUNDS):
            session = new_session_id()
            await store.append(session, [SessionCreated(agent="a", owner="o", settings={}, items=())], expected_seq=0)

            async def append(
                events: Sequence[Event], blobs: Mapping[BlobHash, str], session: SessionId = session
            ) -> None:
                await store.append(session, events, blobs=blobs)

            for keep, found in ((forget, alone), (append, stored)):
                start = time.process_time()
                await record(CallRecorder(keep, purpose="answer", turn=1), calls)
                found.append((time.process_time() - start) / len(calls) * 1e3)
    print(f"ms of processor time for a call: {median(alone):.2f} to record, {median(stored):.2f} with the append\n")


async def main() -> None:
    """Print bytes and times."""
    with tempfile.TemporaryDirectory() as directory:
        for size, lines in (("1 kB", 26), ("4 kB", 100)):
            print(f"Results of {size}")
            turns = await sent_calls(Path(directory) / size, lines)
            await report_bytes(turns)
            await report_time(turns[0], Path(directory) / size)


if __name__ == "__main__":
    asyncio.run(main())
