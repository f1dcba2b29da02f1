"""Context tests: which items a message must, may and must not select, kept beside the agent in `tests/*.yaml`.

    - name: a question about refunds finds the billing reference
      message: When do I get my refund?
      history:                        # what was said before; only follow-ups need it
        - user: I was charged twice.
        - assistant: Sorry about that.
      added: [rule:tone]              # already in the session, by hand
      settings: {floor: 0.3}          # over the agent's search settings
      must: [reference:billing]
      may: [reference:prices]         # without this line, anything else may be selected too
      must_not: [weather:get_forecast]

A file holds one test or a list of them. Tests run the real selection and call no model.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import Any, Protocol, cast

import anyio.to_thread

from windowpane.agents.base import Agents
from windowpane.agents.fields import Fields, Notes
from windowpane.agents.items import dumped
from windowpane.agents.tree import ListNode, Node, ScalarNode, TableNode, TreeError, read_yaml, value_of
from windowpane.api.context_tests import Breach, ContextTest, ContextTests, Report, Selected, Verdict
from windowpane.context.agents import Problem
from windowpane.context.events import SessionItem
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef, reference_ref, rule_ref, tool_ref
from windowpane.context.messages import AssistantMessage, Message, ModelReply, Step, UserMessage, Utterance
from windowpane.context.session import SessionState
from windowpane.errors import InvalidInputError, InvalidSettingError
from windowpane.errors.base import why_unreadable
from windowpane.insight.past import PastTurn, Records, past_turn
from windowpane.insight.rescore import settings_of
from windowpane.request.gather import gather
from windowpane.request.selector import Selection
from windowpane.search.query import said
from windowpane.search.settings import SelectSettings, search_settings
from windowpane.sessions.agent_items import AgentItems

FOLDER = "tests"
WAIT_S = 60.0
"""How long a test waits for vectors and for tool servers."""

CLOSE = 0.5
"""A candidate whose score is at least this share of the cut-off came close."""

FEW_MESSAGES = 8
"""How many messages are looked through for the exchange before a follow-up."""


class Selecting(Protocol):
    """What running tests needs of an engine."""

    @property
    def agents(self) -> Agents:
        """Where agents are."""
        ...

    @property
    def agent_items(self) -> AgentItems:
        """What agents make available, and which of it a message needs."""
        ...


async def run_tests(engine: Selecting, agent_name: str) -> Report:
    """Run every test of an agent.

    Raises:
        AgentNotFoundError: no such agent.
    """
    agent = engine.agents.current(agent_name)
    found = read_tests(Path(agent.folder))
    servers = await engine.agent_items.servers(agent_name, settle_s=WAIT_S) if found.tests else ()
    known = {item.ref for item in (*agent.rules, *agent.references)}
    known |= {tool.ref for server in servers for tool in server.tools}
    results: list[Verdict] = []
    for test in found.tests:
        always = [item.ref for item in (*agent.rules, *agent.references) if item.enabled and item.include == "always"]
        always += [tool.ref for server in servers for tool in server.tools if tool.include == "always"]
        held = tuple(dict.fromkeys((*always, *test.added)))
        session = SessionState(id=SessionId(""), context_items=tuple(SessionItem(ref, "manual") for ref in held))
        search = {**agent.settings.search, **test.settings, "deadline_s": WAIT_S}
        candidates = gather(agent, servers, session).candidates
        selection = await engine.agent_items.select(test.message, candidates, search, recent=as_messages(test.history))
        results.append(judge(test, selection, held, known))
    return Report(agent=agent_name, results=tuple(results), problems=found.problems)


def judge(test: ContextTest, selection: Selection, held: Iterable[ItemRef], known: Iterable[ItemRef]) -> Verdict:
    """Return how a test went. `held` is in the session anyway, and `known` is everything that the agent has."""
    refs = set(known)
    taken = {chosen.item.ref: chosen.reason for chosen in selection.chosen}
    given = taken | dict.fromkeys(held, "it is in the session")
    left_out = {candidate.ref: candidate.reason for candidate in selection.left_out}
    breaches = [
        Breach(ref=ref, broke="unknown", reason=f"the agent has no such item{_hint(ref, refs)}")
        for ref in dict.fromkeys((*test.must, *(test.may or ()), *test.must_not, *test.added))
        if ref not in refs
    ]
    breaches += [
        Breach(ref=ref, broke="must", reason=left_out.get(ref, "not a candidate: its include mode is not `agent`"))
        for ref in test.must
        if ref in refs and ref not in given
    ]
    breaches += [Breach(ref=ref, broke="must_not", reason=given[ref]) for ref in test.must_not if ref in given]
    if test.may is not None:
        expected = {*test.must, *test.may, *test.must_not}
        breaches += [
            Breach(ref=ref, broke="unexpected", reason=reason) for ref, reason in taken.items() if ref not in expected
        ]
    return Verdict(
        test=test,
        passed=not breaches,
        selected=tuple(
            Selected(ref=chosen.item.ref, score=chosen.evidence.score, reason=chosen.reason)
            for chosen in selection.chosen
        ),
        breaches=tuple(breaches),
        degraded=selection.degraded,
    )


def _hint(ref: ItemRef, known: Iterable[ItemRef]) -> str:
    close = get_close_matches(str(ref), [str(other) for other in known], n=1)
    return f"; did you mean {close[0]}?" if close else ""


def as_messages(history: Sequence[Utterance]) -> tuple[Message, ...]:
    """Return a conversation that a test only gives the words of."""
    now = datetime.now(UTC)
    return tuple(
        UserMessage(content=entry.text, seq=seq, at=now)
        if entry.role == "user"
        else AssistantMessage(model_reply=ModelReply((Step(text=entry.text),)), seq=seq, at=now)
        for seq, entry in enumerate(history, 1)
    )


# Files


def read_tests(folder: Path) -> ContextTests:
    """Return the tests in an agent's folder, in the order of their files."""
    found = [
        _parsed_file(path) for path in sorted((*(folder / FOLDER).glob("*.yaml"), *(folder / FOLDER).glob("*.yml")))
    ]
    return ContextTests(
        tuple(test for file in found for test in file.tests),
        tuple(problem for file in found for problem in file.problems),
    )


def parse_tests(file: str, text: str) -> ContextTests:
    """Return the tests that a text holds; `file` is what the text is called."""
    notes = Notes(file)
    tests: list[ContextTest] = []
    try:
        tests = _read_file(read_yaml(text), notes)
    except TreeError as error:
        notes.fail(error.line, error.reason)
    return ContextTests(tuple(tests), tuple(notes.problems))


def _parsed_file(path: Path) -> ContextTests:
    file = f"{FOLDER}/{path.name}"
    try:
        return parse_tests(file, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return ContextTests((), (Problem(file=file, line=None, reason=f"cannot be read: {why_unreadable(error)}"),))


def _read_file(node: Node, notes: Notes) -> list[ContextTest]:
    found: list[ContextTest] = []
    for entry in node.values if isinstance(node, ListNode) else (node,):
        if isinstance(entry, TableNode):
            # Each entry is judged by itself: one that cannot be read must not take the others with it.
            own = Notes(notes.file)
            test = _read_test(entry, own)
            notes.problems += own.problems
            if not own.failed:
                found.append(test)
        else:
            notes.fail(entry.line, "a test is a table with at least a message")
    return found


def _read_test(table: TableNode, notes: Notes) -> ContextTest:
    fields = Fields(table, notes)
    message = fields.text("message", "")
    if not message.strip():
        notes.fail(fields.line("message") or table.line, "a test needs a message")
    may = fields.node("may")
    test = ContextTest(
        file=notes.file,
        line=table.line,
        name=fields.text("name", "") or title_of(message),
        message=message,
        history=_history(fields, notes),
        added=_refs(fields, "added", notes),
        settings=_settings(fields, notes),
        must=_refs(fields, "must", notes),
        may=None if may is None else _refs(fields, "may", notes),
        must_not=_refs(fields, "must_not", notes),
    )
    fields.finish()
    for ref in {*test.must} & {*test.must_not}:
        notes.fail(table.line, f"{ref} must and must not be selected")
    return test


def _refs(fields: Fields, key: str, notes: Notes) -> tuple[ItemRef, ...]:
    found: list[ItemRef] = []
    for scalar in fields.texts(key):
        ref = ref_from(scalar.text)
        if ref is None:
            notes.fail(scalar.line, f"{scalar.text!r} names no item; write rule:NAME, reference:NAME or SERVER:TOOL")
        else:
            found.append(ref)
    return tuple(found)


def _history(fields: Fields, notes: Notes) -> tuple[Utterance, ...]:
    node = fields.node("history")
    if node is None:
        return ()
    found: list[Utterance] = []
    for entry in node.values if isinstance(node, ListNode) else (node,):
        said_by = list(entry.entries.items()) if isinstance(entry, TableNode) else []
        role, text = (said_by[0][0], said_by[0][1][1]) if len(said_by) == 1 else ("", None)
        if role in ("user", "assistant") and isinstance(text, ScalarNode):
            found.append(Utterance(role, text.text))
        else:
            notes.fail(entry.line, "history is a list of `user: …` and `assistant: …`")
    return tuple(found)


def _settings(fields: Fields, notes: Notes) -> Mapping[str, Any]:
    table = fields.table("settings")
    if table is None:
        return {}
    settings = cast("dict[str, Any]", value_of(table))
    try:
        search_settings(settings)
    except InvalidSettingError as error:
        notes.fail(table.line, str(error))
    return settings


def ref_from(text: str) -> ItemRef | None:
    """Return the item that a text such as `rule:tone` or `files:read` names, or None."""
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        return None
    return rule_ref(name) if kind == "rule" else reference_ref(name) if kind == "reference" else tool_ref(kind, name)


# From a turn


class Keeping(Records, Protocol):
    """What making a test of a turn needs of an engine."""

    @property
    def agents(self) -> Agents:
        """Where agents are."""
        ...


async def keep_turn(engine: Keeping, session_id: SessionId, turn: int, *, name: str = "") -> ContextTest:
    """Make a test of a turn, in a new file of its agent's folder.

    Raises:
        TurnNotFoundError: no such turn, or no request was recorded for it.
        AgentNotFoundError: its agent is not there any more.
        InvalidInputError: the folder cannot be written to.
    """
    past = await past_turn(engine, session_id, turn)
    agent = engine.agents.current(past.context.agent)
    before = (
        await engine.conversations.messages(session_id, before=past.seq, limit=FEW_MESSAGES) if past.seq > 1 else []
    )
    test = drafted(past, before, agent.settings.search, name=name)
    return await anyio.to_thread.run_sync(save_test, Path(agent.folder), test)


def drafted(
    past: PastTurn, before: Sequence[Message], agent_search: Mapping[str, Any], *, name: str = ""
) -> ContextTest:
    """Return the test that a past turn passes: what it selected must be selected, and what came close may be.

    `before` are the messages before the turn, and `agent_search` the search settings that its agent has by itself.
    """
    context = past.context
    close = [c.ref for c in context.candidates if c.evidence and c.evidence.score >= CLOSE * (c.evidence.cut_off or 1)]
    history = said(before)[-2:] if context.query.context_share else ()
    return ContextTest(
        name=name or title_of(past.message),
        message=past.message,
        history=history,
        added=tuple(item.ref for item in context.items if item.include_mode == "manual" and _is_own(past, item.ref)),
        settings=_differences(past, agent_search),
        must=tuple(item.ref for item in context.items if item.selected),
        may=tuple(close),
    )


def _is_own(past: PastTurn, ref: ItemRef) -> bool:
    return past.catalog is None or past.catalog.entry(ref) is not None


def _differences(past: PastTurn, agent_search: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the turn had and that its agent does not have by itself."""
    had = settings_of(past.context)
    if had is None:
        return {}
    own = search_settings(agent_search)
    found: dict[str, Any] = {} if own.context == had.context else {"context": had.context}
    for domain in ("text", "tool"):
        changed = _changed(own.of(domain), had.of(domain))
        if changed:
            found["tools" if domain == "tool" else "text"] = changed
    return found


def _changed(before: SelectSettings, after: SelectSettings) -> dict[str, Any]:
    names = SelectSettings.__slots__
    return {name: getattr(after, name) for name in names if getattr(before, name) != getattr(after, name)}


def title_of(message: str) -> str:
    """Return the beginning of a message, to name a test by."""
    line = " ".join(message.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


def render_test(test: ContextTest) -> str:
    """Return a test as the YAML that reads as this test."""
    body: dict[str, Any] = {"name": test.name, "message": test.message}
    if test.history:
        body["history"] = [{entry.role: entry.text} for entry in test.history]
    if test.added:
        body["added"] = [str(ref) for ref in test.added]
    if test.settings:
        body["settings"] = dict(test.settings)
    body["must"] = [str(ref) for ref in test.must]
    if test.may is not None:
        body["may"] = [str(ref) for ref in test.may]
    if test.must_not:
        body["must_not"] = [str(ref) for ref in test.must_not]
    return dumped([body])


def save_test(folder: Path, test: ContextTest) -> ContextTest:
    """Write a test into an agent's folder, in a new file, and return it with the file's name.

    Raises:
        InvalidInputError: the folder cannot be written to.
    """
    stem = re.sub(r"[^a-z0-9]+", "-", test.name.lower()).strip("-")[:50].strip("-") or "turn"
    if (folder / FOLDER).is_symlink():
        raise InvalidInputError(f"{folder / FOLDER} is a link, and links are not written through")
    try:
        (folder / FOLDER).mkdir(exist_ok=True)
        for number in count(1):
            name = f"{stem}.yaml" if number == 1 else f"{stem}-{number}.yaml"
            try:
                with (folder / FOLDER / name).open("x", encoding="utf-8", newline="") as file:
                    file.write(render_test(test))
            except FileExistsError:
                continue
            return replace(test, file=f"{FOLDER}/{name}")
    except OSError as error:
        raise InvalidInputError(f"the test cannot be written into {folder / FOLDER}: {error.strerror}") from None
    raise AssertionError("counting never ends")
