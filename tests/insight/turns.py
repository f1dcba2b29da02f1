"""Past turns without an engine: the real selection, fitting and recording, from measurements that a test makes up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import numpy as np

from windowpane.agents.base import Agent, Prompts
from windowpane.calls.ledger import calls_of
from windowpane.context.agents import AgentSettings
from windowpane.context.events import ModelReplied, Recorded, SessionItem
from windowpane.context.ids import BlobHash, RequestId, SessionId
from windowpane.context.items import Domain, IncludeMode, Item, ItemRef, Reference, Rule, Tool
from windowpane.context.messages import Message, Step
from windowpane.context.request import CallSettings, Candidate, Evidence, Query, Request, RequestContext
from windowpane.context.session import SessionState
from windowpane.insight.past import PastTurn
from windowpane.memory.recent import conversation
from windowpane.request.assemble import Ingredients, assemble
from windowpane.request.catalog import keep_catalog, read_catalog
from windowpane.request.gather import gather, with_finders
from windowpane.request.prompt.sections import build_prompt
from windowpane.request.record import context_of, to_blobs
from windowpane.request.selector import Chosen, Selection
from windowpane.search.base import Measurements, PassageFinder, SearchQuery
from windowpane.search.chunks import Chunk
from windowpane.search.documents import DOMAINS
from windowpane.search.select import Decision, select
from windowpane.search.settings import TOOL_PRESETS, SearchSettings, SelectSettings, written_out
from windowpane.tools.base import ServerStatus

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SESSION = SessionId("ses_test")


@dataclass(frozen=True)
class Scene:
    """Everything that a turn's request depends on. `near` gives meaning and words by item, `held` is in the session."""

    items: tuple[Item, ...] = ()
    near: Mapping[ItemRef, tuple[float | None, float]] = field(
        default_factory=dict[ItemRef, tuple[float | None, float]]
    )
    held: tuple[ItemRef, ...] = ()
    search: SearchSettings = field(default_factory=SearchSettings)
    window_tokens: int = 32_000
    message: str = "How do I resize an image?"
    small_talk: bool = False
    context_share: float = 0.0
    recent: tuple[Message, ...] = ()
    core: str = "You are Pane."
    turn: int = 1
    steps: tuple[Step, ...] = ()
    model: str = "echo"
    max_output_tokens: int = 100
    token_factor: float = 1.0
    tools_shown: bool = True
    finders: bool = False

    @property
    def agent(self) -> Agent:
        return Agent(
            name="pane",
            folder="pane",
            settings=AgentSettings(working_context=False),
            prompts=Prompts(core=self.core),
            rules=tuple(item for item in self.items if isinstance(item, Rule)),
            references=tuple(item for item in self.items if isinstance(item, Reference)),
        )

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        tools = [item for item in self.items if isinstance(item, Tool)]
        names = sorted({tool.server for tool in tools})
        return tuple(
            ServerStatus(name=name, state="ready", tools=tuple(tool for tool in tools if tool.server == name))
            for name in names
        )


def played(scene: Scene) -> PastTurn:
    """Return the turn as it is recorded."""
    catalog = keep_catalog(scene.agent, scene.servers)
    request = asked(scene, catalog.name)
    name, blobs = to_blobs(request, {item.ref: item for item in scene.items})
    texts = {**catalog.blobs, **blobs}
    return PastTurn(
        session_id=SESSION,
        turn=scene.turn,
        seq=2 * scene.turn,
        record=name,
        body=texts[name],
        context=context_of(texts[name], texts),
        texts=texts,
        catalog=read_catalog(texts[catalog.name]),
        steps=scene.steps,
        calls=calls_of(
            Recorded(seq=number, at=NOW, event=ModelReplied(turn=scene.turn, step=step))
            for number, step in enumerate(scene.steps, 1)
        ),
    )


def scene_of(random: Random) -> Scene:
    """Return a scene with a few items of every kind, and often with too little room for them."""
    items: list[Item] = []
    for number in range(random.randint(1, 9)):
        words = "word " * random.choice((3, 20, 60, 150, 320, 500))
        include: IncludeMode = random.choice(("agent", "agent", "agent", "agent", "manual", "always"))
        priority = random.choice((100, 500))
        made: tuple[Item, ...] = (
            Tool("files", f"t{number}", words, include=include),
            Rule(f"r{number}", words, priority=priority, include=include),
            Reference(f"f{number}", words, priority=priority, include=include),
        )
        items.append(random.choice(made))
    must = sum(len(str(item)) for item in items if item.include == "always") // 4
    token_factor = random.choice((1.0, 1.0, 1.3, 0.7))
    max_output_tokens = random.choice((100, 100, 100_000))
    reply = 1.0 if max_output_tokens == 100 else 4 / 3
    model = random.choice(("echo", "echo", "openai:gpt-4o"))
    return Scene(
        items=tuple(items),
        near={item.ref: _nearness(random) for item in items},
        held=tuple(item.ref for item in items if item.include != "always" and random.random() < 0.15),
        search=SearchSettings(settings_of(random), settings_of(random)),
        window_tokens=int((random.randint(450, 1500) + must) * max(token_factor, 1.0) * reply),
        model=model,
        max_output_tokens=max_output_tokens,
        token_factor=token_factor,
        small_talk=random.random() < 0.1,
        context_share=random.choice((0.0, 0.0, 0.4)),
        finders=random.random() < 0.5,
        tools_shown=random.random() < 0.8,
    )


def tools_scene_of(random: Random) -> Scene:
    """Return a scene with tools of a few servers, under a preset of their own; the room is sometimes short."""
    servers = ("files", "mail", "web")[: random.randint(1, 3)]
    tools = tuple(
        Tool(random.choice(servers), f"t{number}", "word " * random.choice((3, 60, 150)), include="agent")
        for number in range(random.randint(1, 16))
    )
    return Scene(
        items=tools,
        near={tool.ref: _nearness(random) for tool in tools},
        held=tuple(tool.ref for tool in tools if random.random() < 0.05),
        search=SearchSettings(tools=random.choice((TOOL_PRESETS["normal"], *TOOL_PRESETS.values()))),
        window_tokens=random.choice((32_000, 32_000, random.randint(450, 1500))),
        context_share=random.choice((0.0, 0.0, 0.4)),
        finders=random.random() < 0.5,
    )


def _nearness(random: Random) -> tuple[float | None, float]:
    # Few digits, so that scores are often equal.
    digits = random.choice((1, 3))
    return (
        None if random.random() < 0.2 else round(random.uniform(0, 0.9), digits),
        round(random.uniform(0, 0.9), digits),
    )


def settings_of(random: Random) -> SelectSettings:
    return SelectSettings(
        enabled=random.random() < 0.85,
        top_n=random.randint(0, 6),
        include_score=round(random.uniform(0.2, 1), 3),
        floor=round(random.uniform(0, 0.6), random.choice((2, 6))),
        share_of_best=round(random.uniform(0, 1), random.choice((2, 6))),
    )


def sent(context: RequestContext) -> set[ItemRef]:
    return {item.ref for item in context.items if item.sent}


def asked(scene: Scene, catalog: BlobHash | None = None) -> Request:
    """Return the request that the turn makes."""
    agent = scene.agent
    always = [SessionItem(item.ref, "always") for item in scene.items if item.include == "always"]
    session = SessionState(
        id=SESSION, context_items=(*always, *(SessionItem(ref, "manual") for ref in scene.held)), recent=scene.recent
    )
    gathered = gather(agent, scene.servers, session)
    selection = _selection(scene, gathered.candidates)
    if scene.finders:
        gathered = with_finders(gathered, selection.left_out)
    return assemble(
        Ingredients(
            request_id=RequestId("req_test"),
            turn=scene.turn,
            now=NOW,
            agent=agent,
            session=session,
            message=scene.message,
            settings=CallSettings(
                model=scene.model, max_output_tokens=scene.max_output_tokens, tools_shown=scene.tools_shown
            ),
            window_tokens=scene.window_tokens,
            window_source="test",
            sections=build_prompt(agent, session.settings, now=NOW),
            gathered=gathered,
            history=conversation(scene.recent),
            selection=selection,
            catalog=catalog,
            token_factor=scene.token_factor,
        )
    )


def _selection(scene: Scene, candidates: Sequence[Item]) -> Selection:
    query = SearchQuery(scene.message, context_share=scene.context_share, small_talk=scene.small_talk, reason="because")
    choices: list[Decision] = []
    for domain in DOMAINS:
        refs = [item.ref for item in candidates if (item.ref.type == "tool") == (domain == "tool")]
        choices += select(_measured(domain, refs, scene.near), query, scene.search.of(domain))
    choices.sort(key=lambda choice: (-choice.score, choice.key.sort_key))
    items = {item.ref: item for item in candidates}
    return Selection(
        query=Query(
            text=scene.message, reason="because", context_share=scene.context_share, small_talk=scene.small_talk
        ),
        chosen=tuple(Chosen(items[c.key], _evidence(c), c.reason) for c in choices if c.kept),
        left_out=tuple(
            Candidate(
                type=c.key.type,
                name=c.key.name,
                server=c.key.server,
                code=c.code,
                reason=c.reason,
                evidence=_evidence(c),
            )
            for c in choices
            if not c.kept
        ),
        search=written_out(scene.search),
    )


def _measured(
    domain: Domain, refs: Sequence[ItemRef], near: Mapping[ItemRef, tuple[float | None, float]]
) -> Measurements:
    count = len(refs)
    ranks = np.empty(count, np.intp)
    ranks[sorted(range(count), key=lambda i: refs[i].sort_key)] = np.arange(count)
    values = [near.get(ref, (0.05, 0.0)) for ref in refs]
    meaning = np.array([np.nan if value is None else value for value, _ in values], float)
    passages = tuple((Chunk(0, len(ref.name), ref.name),) for ref in refs)
    found = PassageFinder(passages, np.arange(count, dtype=np.intp), np.zeros(count, np.float32))
    return Measurements(domain, tuple(refs), meaning, np.array([words for _, words in values], float), ranks, found)


def _evidence(choice: Decision) -> Evidence:
    return Evidence(
        score=choice.score,
        meaning=choice.meaning,
        words=choice.words,
        rank=choice.rank,
        passage=choice.passage,
        cut_off=choice.cut_off,
        floor=choice.floor,
    )
