"""`windowpane doctor`: check every part, and say for each fault what to do about it."""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import Literal

import anyio
import httpx2

from windowpane.agents.agent import CORE
from windowpane.agents.base import Agent
from windowpane.agents.folder import MANIFEST
from windowpane.cli.failing import in_one_line
from windowpane.cli.screen import Screen, counted
from windowpane.context.events import SessionCreated
from windowpane.context.ids import new_session_id
from windowpane.context.request import CallSettings, RequestMessage
from windowpane.context.session import SessionSettings
from windowpane.engine import Engine
from windowpane.errors import EmbedderError, MissingCorePromptError, ModelError, StoreError, WindowpaneError
from windowpane.models.base import ModelStep
from windowpane.models.provider import OLLAMA_URL, SETUPS
from windowpane.request.prompt import build_prompt
from windowpane.settings import Settings, without_password
from windowpane.tools.base import ServerStatus
from windowpane.wiring import open_embedder, open_engine, open_store

REACH_S = 5.0
"""How long a model's own address may take to answer."""

Health = Literal["good", "doubtful", "broken"]
MARKS: Mapping[Health, tuple[str, str]] = {
    "good": ("ok", "green"),
    "doubtful": ("??", "yellow"),
    "broken": ("no", "red"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `advice` is what to do when it is not good."""

    subject: str
    health: Health
    detail: str
    advice: str = ""


def doctor(settings: Settings, *, ask: bool, wait_s: float, as_json: bool) -> int:
    """Print what is well and what is not. Return 1 when something is broken."""
    screen = Screen()
    findings: list[Finding] = []

    async def examined() -> None:
        async for finding in examine(settings, ask=ask, wait_s=wait_s):
            findings.append(finding)
            if not as_json:
                _draw(screen, finding)

    anyio.run(examined)
    broken = sum(finding.health == "broken" for finding in findings)
    if as_json:
        screen.write(dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False) + "\n")
    else:
        screen.line(f"{counted(broken, 'thing')} broken." if broken else "Nothing is broken.", "bold")
    return 1 if broken else 0


async def examine(settings: Settings, *, ask: bool, wait_s: float) -> AsyncIterator[Finding]:
    """Look at everything, the store first."""
    store = await _store(settings.database_url)
    yield store
    yield await _selection(settings)
    # The rest can be looked at without the store.
    usable = settings if store.health == "good" else settings.model_copy(update={"store_url": "memory:"})
    async with open_engine(usable) as engine:
        for finding in _folders(settings.agents_folder, engine.agents.names()):
            yield finding
        for name in engine.agents.names():
            agent = engine.agents.current(name)
            for finding in _agent(agent):
                yield finding
            yield await _model(engine, agent, ask=ask)
            for server in await engine.servers(name, settle_s=wait_s):
                yield _server(agent, server, wait_s)


async def _store(url: str) -> Finding:
    """Open the store and write to it, as a session would."""
    trial = new_session_id()
    created = SessionCreated(agent="", owner="doctor", settings={}, items=())
    try:
        async with open_store(url) as store:
            await store.append(trial, [created], expected_seq=0)
            await store.delete(trial)
            # Only Redis can be set up so that a restart loses sessions.
            durability = getattr(store, "durability", None)
    except StoreError as error:
        return Finding("store", "broken", in_one_line(error), "name another place with --store-url or --data")
    except WindowpaneError as error:
        return Finding("store", "broken", in_one_line(error), "correct --store-url")
    keeps = f"; {durability}" if durability else ""
    return Finding("store", "good", f"{without_password(url)} opens and can be written{keeps}")


async def _selection(settings: Settings) -> Finding:
    """Embed one word, as the first search would."""
    embedder = open_embedder(settings)
    try:
        vectors = await embedder.embed(["hello"])
    except EmbedderError as error:
        return Finding(
            "selection", "doubtful", f"words decide alone: {in_one_line(error)}", "items are still selected, less well"
        )
    return Finding("selection", "good", f"{embedder.model} embeds, {vectors.shape[1]} numbers a text")


def _folders(folder: Path, names: tuple[str, ...]) -> Iterator[Finding]:
    if not names:
        advice = "`windowpane init` writes an example agent there"
        yield Finding("agents", "broken", f"there is no agent in {folder}", advice)
        return
    yield Finding("agents", "good", f"{counted(len(names), 'agent')} in {folder}: {', '.join(names)}")
    if (folder / MANIFEST).exists():
        return
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and entry.name not in names and not entry.name.startswith("."):
            detail = f"{entry} has no {MANIFEST}, so it is not an agent"
            yield Finding("agents", "doubtful", detail, f"write {MANIFEST} (it may be empty), or move the folder away")


def _agent(agent: Agent) -> Iterator[Finding]:
    subject = f"agent {agent.name}"
    try:
        build_prompt(agent, SessionSettings(), now=datetime.now(UTC))
    except MissingCorePromptError as error:
        yield Finding(subject, "broken", str(error), f"write {error.path}")
    for problem in agent.problems:
        if problem.file == CORE and agent.prompts.core is None and problem.line is None:
            continue
        place = f"{agent.folder}/{problem.file}" + (f":{problem.line}" if problem.line else "")
        yield Finding(
            subject, "broken", f"{place}: {problem.reason}", "correct the file; it counts from the next message"
        )
    held = f"{counted(len(agent.rules), 'rule')}, {counted(len(agent.references), 'reference')}"
    if not agent.problems:
        yield Finding(subject, "good", f"{held}, {counted(len(agent.servers), 'tool server')}, a core prompt")


async def _model(engine: Engine, agent: Agent, *, ask: bool) -> Finding:
    name = agent.settings.model
    subject = f"model {name}"
    where = f"`model:` in {agent.folder}/{MANIFEST}"
    try:
        model = engine.models.open(name)
        url = _own_url(name)
        if url and (unreachable := await _unreachable(url)):
            return Finding(subject, "broken", unreachable, f"start the server, or correct its address or {where}")
        if not ask:
            size = f"{model.window_tokens:,} tokens" if model.window_tokens else "a window of unknown size"
            reached = f", {url} answers" if url else ""
            return Finding(subject, "good", f"set up, with {size}{reached}; --ask really asks it")
        request = [RequestMessage(role="user", content="Answer with the one word: ready", part="message")]
        async for event in model.stream(
            request, (), CallSettings(model=name, max_output_tokens=agent.settings.max_output_tokens)
        ):
            if isinstance(event, ModelStep):
                return Finding(subject, "good", f"answered in {event.step.latency_ms:,} ms")
    except ModelError as error:
        return Finding(subject, "broken", in_one_line(error), f"set it up, or choose another: {where}")
    return Finding(subject, "broken", "its answer had no end", f"choose another: {where}")


def _own_url(name: str) -> str:
    """Return the address that the environment gives for this model's provider; empty for the provider's usual one."""
    provider = name.partition(":")[0]
    if provider not in SETUPS:
        return ""
    url = os.environ.get(SETUPS[provider].url_variable or " ", "")
    return url or (OLLAMA_URL if provider == "ollama" else "")


async def _unreachable(url: str) -> str:
    """Return why nothing answers at an address; empty when something does, whatever it says."""
    try:
        async with httpx2.AsyncClient(timeout=REACH_S) as client:
            await client.get(url)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return f"nothing answers at {url}: {str(error) or type(error).__name__}"
    return ""


def _server(agent: Agent, server: ServerStatus, wait_s: float) -> Finding:
    subject = f"tool server {server.name}"
    entry = f"`{server.name}` under mcpServers in {agent.folder}"
    match server.state:
        case "ready":
            tools = ", ".join(tool.name for tool in server.tools)
            return Finding(
                subject, "good", f"connected, {counted(len(server.tools), 'tool')}{f': {tools}' if tools else ''}"
            )
        case "disabled":
            return Finding(subject, "good", "switched off")
        case "connecting":
            return Finding(
                subject,
                "broken",
                f"not connected after {wait_s:g} s",
                f"give it longer with --wait, or look at {entry}",
            )
        case "failed":
            return Finding(subject, "broken", " ".join(server.error.split()), f"look at {entry}")


def _draw(screen: Screen, finding: Finding) -> None:
    mark, style = MARKS[finding.health]
    screen.line(f"{mark}  {finding.subject}: {finding.detail}", style if finding.health != "good" else "")
    if finding.advice:
        screen.line(f"      → {finding.advice}")
