"""The checks of `windowpane doctor`: the store, the search, the agents, their models and tool servers."""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
import httpx2

from windowpane.agents.agent import CORE
from windowpane.agents.base import Agent
from windowpane.agents.manifest import MANIFEST
from windowpane.certificates import trusted
from windowpane.cli.doctor.code_words import PARTS, Heard, ask_for_code_words
from windowpane.cli.errors import in_one_line
from windowpane.cli.terminal import counted
from windowpane.context.events import SessionCreated
from windowpane.context.ids import content_hash, new_session_id
from windowpane.context.messages import ECHO
from windowpane.context.request import CallSettings
from windowpane.context.session import SessionSettings
from windowpane.engine import Engine
from windowpane.errors import (
    EmbedderError,
    EncryptionKeyError,
    InvalidSettingError,
    MissingCorePromptError,
    ModelError,
    StoreError,
    UnreadableAgentError,
    WindowpaneError,
)
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.memory.window import window_of
from windowpane.models.setup.environment import OLLAMA_URL, SETUPS
from windowpane.request.prompt.sections import build_prompt
from windowpane.settings import Settings
from windowpane.stores.base import Store
from windowpane.stores.detect import refuse_sealed
from windowpane.text.redact import shown_address, without_password
from windowpane.tools.base import ServerStatus
from windowpane.wiring import encryption_keys, open_blobs, open_bus, open_embedder, open_engine, open_store

REACH_S = 5.0
"""How long the address of a model server may take to answer."""

PREFIX = str(Settings.model_config.get("env_prefix"))
NO_SETTINGS = ("url", "token", "python")
"""Variables of ours that are no settings of a process: of commands, and of tool servers."""

_WITHOUT_STORE = {"store_url": "memory:", "encryption_key": None, "encryption_key_file": None}

Health = Literal["good", "doubtful", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `advice` says what to do when it is not good."""

    subject: str
    health: Health
    detail: str
    advice: str = ""


async def examine(settings: Settings, *, ask: bool, wait_s: float) -> AsyncIterator[Finding]:
    """Check everything, the store first."""
    for finding in _variables(os.environ):
        yield finding
    store = await _store(settings)
    yield store
    if settings.bus_url is not None:
        yield await _bus(settings.bus_url)
    if settings.analytics_url is not None:
        yield await _analytics(settings.analytics_url)
    yield await _selection(settings)
    # The other checks do not need the store.
    usable = settings if store.health == "good" else settings.model_copy(update=_WITHOUT_STORE)
    async with open_engine(usable) as engine:
        for finding in _folders(settings.agents_folder, engine.agents.names()):
            yield finding
        for name in engine.agents.names():
            agent = engine.agents.current(name)
            for finding in _agent(agent):
                yield finding
            if agent.unreadable is None:
                # Otherwise its settings are the defaults, and say nothing of the model that is meant.
                yield await _model(engine, agent, ask=ask)
            for server in await engine.agent_items.servers(name, settle_s=wait_s):
                yield _server(agent, server, wait_s)


def _variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Name the variables that look like a setting and are none: what they should set has its default."""
    known = [name.upper() for name in (*Settings.model_fields, *NO_SETTINGS)]
    for name in sorted(environment):
        bare = name.removeprefix(PREFIX)
        if bare != name and bare not in known:
            meant = get_close_matches(bare, known, n=1)
            advice = f"did you mean {PREFIX}{meant[0]}?" if meant else "docs/reference/settings.md lists the settings"
            yield Finding("environment", "doubtful", f"{name} is not a setting and has no effect", advice)


async def _store(settings: Settings) -> Finding:
    """Open the store and write to it, as a session would."""
    url, trial = settings.database_url, new_session_id()
    blobs = (settings.blobs_url or "").partition("?")[0]
    created = SessionCreated(agent="", owner="doctor", settings={}, items=())
    try:
        async with open_store(url, encryption_keys(settings), blobs=open_blobs(settings)) as store:
            await refuse_sealed(store)
            large = "x" * settings.blobs_from_bytes if settings.blobs_url else "x"
            await store.append(trial, [created], expected_seq=0, blobs={content_hash(large): large})
            await store.blob(trial, content_hash(large))
            await store.delete(trial)
            # Only Redis can be set up so that a restart loses sessions.
            durability = _durability(store)
    except EncryptionKeyError as error:
        return Finding("store", "broken", in_one_line(error))
    except StoreError as error:
        return Finding("store", "broken", in_one_line(error), "choose another store with --store-url or --data")
    except WindowpaneError as error:
        return Finding("store", "broken", in_one_line(error), "correct this setting")
    keeps = f"; texts from {settings.blobs_from_bytes:,} bytes on in {blobs}" if blobs else ""
    keeps += (f"; {durability}" if durability else "") + ("; encrypted" if store.encrypted else "")
    return Finding("store", "good", f"{without_password(url)} can be opened and written{keeps}")


def _durability(store: Store) -> object:
    """Return what a store says about acknowledged writes, however many stores are around it."""
    while (inner := getattr(store, "inner", None)) is not None:
        store = inner
    return getattr(store, "durability", None)


async def _bus(url: str) -> Finding:
    """Say something on the bus and hear it, as two workers would."""
    heard = anyio.Event()
    trial = new_session_id()
    try:
        bus = open_bus(url)
    except WindowpaneError as error:
        return Finding("bus", "broken", in_one_line(error), "correct this setting")
    async with bus:
        unsubscribe = bus.subscribe(trial, lambda message: heard.set() if message else bus.publish(trial, b"doctor"))
        with anyio.move_on_after(REACH_S):
            await heard.wait()
        unsubscribe()
    shown = without_password(url)
    if heard.is_set():
        return Finding("bus", "good", f"{shown} carries messages")
    why = f"{shown}: {bus.away or 'no answer'}"
    return Finding("bus", "doubtful", why, "workers look from time to time meanwhile; see that the server runs")


async def _analytics(url: str) -> Finding:
    """Open the place that turns are counted in."""
    shown = without_password(url)
    try:
        with closing(AnalyticsStore(url)) as analytics:
            counted_until = await anyio.to_thread.run_sync(analytics.mark, "counted")
    except InvalidSettingError as error:
        return Finding("analytics", "broken", in_one_line(error), "correct this setting")
    except WindowpaneError as error:
        return Finding("analytics", "doubtful", in_one_line(error), "chat goes on without; see that the server runs")
    since = f"last counted {counted_until:%Y-%m-%d %H:%M} UTC" if counted_until else "nothing counted yet"
    return Finding("analytics", "good", f"{shown} can be used; {since}")


async def _selection(settings: Settings) -> Finding:
    """Embed one word, as the first search would."""
    embedder = open_embedder(settings)
    try:
        vectors = await embedder.embed(["hello"])
    except EmbedderError as error:
        return Finding(
            "selection", "doubtful", f"keywords only: {in_one_line(error)}", "items are still selected, but less well"
        )
    return Finding("selection", "good", f"{embedder.model} works, {vectors.shape[1]} dimensions")


def _folders(folder: Path, names: tuple[str, ...]) -> Iterator[Finding]:
    if not names:
        advice = "`windowpane init` writes an example agent there"
        yield Finding("agents", "broken", f"no agent in {folder}", advice)
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
    except UnreadableAgentError:
        # It is among the problems.
        pass
    for problem in agent.problems:
        if problem.file == CORE and agent.prompts.core is None and problem.line is None:
            continue
        place = f"{agent.folder}/{problem.file}" + (f":{problem.line}" if problem.line else "")
        yield Finding(
            subject, "broken", f"{place}: {problem.reason}", "correct the file; this takes effect with the next message"
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
            tokens, source = window_of(agent, engine.models.window_tokens(name))
            size = f"a window of {tokens:,} tokens ({source})"
            reached = f", {shown_address(url)} answers" if url else ""
            return Finding(subject, "good", f"set up, with {size}{reached}; --ask sends it a message")
        settings = CallSettings(model=name, max_output_tokens=agent.settings.max_output_tokens)
        heard = await ask_for_code_words(model, settings)
    except ModelError as error:
        return Finding(subject, "broken", in_one_line(error), f"set it up, or choose another: {where}")
    if heard is None:
        return Finding(subject, "broken", "its answer was incomplete", f"choose another: {where}")
    return _heard(subject, heard, real=name != ECHO)


def _heard(subject: str, heard: Heard, *, real: bool) -> Finding:
    """Return what the answer of a model says about what reached it. The built-in model only says that it is there."""
    answered = f"answered in {heard.step.latency_ms:,} ms"
    if not real:
        return Finding(subject, "good", answered)
    doubts: list[str] = []
    advice: list[str] = []
    if heard.refused:
        doubts.append(f"it takes no tools ({' '.join(heard.refused.split())})")
        advice.append("choose a model with a template for tools if the agent has any")
    if heard.tools_unseen:
        doubts.append(
            f"its server leaves tools out: it counts {heard.step.usage.input_tokens:,} tokens with and without"
        )
        advice.append("give the model a chat template that has tools, or offer it none: the model never sees them")
    lost = [part for part in heard.lost if part != "tool" or not (heard.refused or heard.tools_unseen)]
    if len(heard.lost) == len(PARTS):
        doubts.append("it repeated none of the code words that it was sent")
        advice.append(
            "look at what its server shows it, or ask a larger model: a small one may not follow the question"
        )
    elif lost:
        doubts.append(f"the code word of these parts did not come back: {', '.join(lost)}")
        advice.append(
            "ask again, and if they stay away, give the model a chat template that has them (docs/caching.md)"
        )
    if heard.far:
        reported = heard.step.usage.input_tokens
        doubts.append(f"it reports {reported:,} tokens of input, and {heard.counted_tokens:,} were counted")
        advice.append("set `context_window` in agent.yaml with care: its server may cut prompts or add to them")
    if doubts:
        return Finding(subject, "doubtful", f"{answered}; {'; '.join(doubts)}", "; ".join(advice))
    return Finding(subject, "good", f"{answered}, and every part of a request reaches it")


def _own_url(name: str) -> str:
    """Return the address that the environment sets for this model's provider; empty for the provider's own."""
    provider = name.partition(":")[0]
    if provider not in SETUPS:
        return ""
    url = os.environ.get(SETUPS[provider].url_variable or " ", "")
    return url or (OLLAMA_URL if provider == "ollama" else "")


async def _unreachable(url: str) -> str:
    """Return why an address does not answer; empty when it does, with whatever status."""
    try:
        async with httpx2.AsyncClient(timeout=REACH_S, verify=trusted()) as client:
            await client.get(url)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return f"no answer from {shown_address(url)}: {str(error) or type(error).__name__}"
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
            return Finding(subject, "good", "disabled")
        case "connecting":
            return Finding(
                subject,
                "broken",
                f"not connected after {wait_s:g} s",
                f"give it longer with --wait, or look at {entry}",
            )
        case "failed":
            return Finding(subject, "broken", " ".join(server.error.split()), f"look at {entry}")
