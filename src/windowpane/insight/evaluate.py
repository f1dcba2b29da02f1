"""How well a selection does on questions whose needs are known.

Labels come from a file in the form of context tests (`must` is needed, `may` is neither right nor wrong), or from use:
of a past turn, what its answer made use of and what was added by hand right after it. The scores of a past turn
are those that were recorded; questions from a file are measured now.

What a selection takes is always the first few in the order of their scores. So a question is a list of scores with the
needed ones marked, and any settings can be tried on it at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from windowpane.api.context_tests import ContextTest
from windowpane.api.evaluation import CalibrationStep, Evaluation, Measure, Wrong
from windowpane.context.events import SessionItem
from windowpane.context.ids import SessionId
from windowpane.context.items import Domain, ItemRef
from windowpane.context.session import SessionState
from windowpane.errors import InvalidFileError, InvalidInputError, NotFoundError
from windowpane.errors.base import why_unreadable
from windowpane.insight.analytics.count import SCORE_STEPS, score_step
from windowpane.insight.analytics.store import Remembered
from windowpane.insight.context_tests import WAIT_S, Selecting, as_messages, parse_tests
from windowpane.insight.past import Records, past_turn
from windowpane.insight.rescore import Scored, domain_of, scored, scored_candidates
from windowpane.request.gather import gather
from windowpane.search.documents import DOMAINS
from windowpane.search.settings import SearchSettings, SelectSettings

SHOWN_WRONG = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuestion:
    """One domain of a labelled question: its candidates, best first, and which of them are needed.

    Candidates that are `free` may be selected or not. `lost` are needed items that were no candidates.
    """

    name: str
    domain: Domain
    refs: tuple[ItemRef, ...]
    scores: tuple[float, ...]
    needed: tuple[bool, ...]
    free: tuple[bool, ...]
    lost: tuple[ItemRef, ...] = ()
    small_talk: bool = False

    def taken(self, settings: SelectSettings) -> int:
        """Return how many of the candidates a selection takes: always the first so many."""
        if not settings.enabled or not self.scores:
            return 0
        cut_off = max(settings.floor, round(max(settings.floor, settings.share_of_best * self.scores[0]), 4))
        certain = sum(score >= settings.include_score for score in self.scores)
        relevant = 0 if self.small_talk else sum(score >= cut_off for score in self.scores)
        return max(certain, min(relevant, settings.top_n))


def evaluate(agent: str, questions: Sequence[LabelledQuestion], settings: SearchSettings) -> Evaluation:
    """Return how a selection with these settings does on these questions.

    Raises:
        InvalidInputError: there are none.
    """
    if not questions:
        raise InvalidInputError("there are no labelled questions; give a file with some, or talk with the agent first")
    wrong = (_wrong(question, settings.of(question.domain)) for question in questions)
    return Evaluation(
        agent=agent,
        search=asdict(settings),
        whole=measure(questions, lambda question: settings.of(question.domain)),
        by_domain={
            domain: measure(own, lambda question: settings.of(question.domain))
            for domain in DOMAINS
            if (own := [question for question in questions if question.domain == domain])
        },
        calibration=_calibration(questions),
        wrong=tuple(found for found in wrong if found.needless or found.missed)[:SHOWN_WRONG],
    )


def measure(questions: Iterable[LabelledQuestion], settings: Callable[[LabelledQuestion], SelectSettings]) -> Measure:
    """Return how well a selection does on these questions, with settings for each."""
    needed = selected = hits = 0
    names: set[str] = set()
    for question in questions:
        taken = question.taken(settings(question))
        needed += sum(question.needed) + len(question.lost)
        selected += taken - sum(question.free[:taken])
        hits += sum(question.needed[:taken])
        names.add(question.name)
    return measured(len(names), needed, selected, hits)


def measured(questions: int, needed: int, selected: int, hits: int) -> Measure:
    """Return counts with their shares."""
    return Measure(
        questions=questions,
        needed=needed,
        selected=selected,
        hits=hits,
        precision=_share(hits, selected),
        recall=_share(hits, needed),
        f1=_share(2 * hits, needed + selected),
        mean_selected=round(selected / questions, 2) if questions else None,
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _wrong(question: LabelledQuestion, settings: SelectSettings) -> Wrong:
    taken = question.taken(settings)
    marks = list(zip(question.refs, question.needed, question.free, strict=True))
    return Wrong(
        name=question.name,
        needless=tuple(ref for ref, needed, free in marks[:taken] if not needed and not free),
        missed=tuple(ref for ref, needed, _ in marks[taken:] if needed) + question.lost,
    )


def _calibration(questions: Iterable[LabelledQuestion]) -> tuple[CalibrationStep, ...]:
    counts = [[0, 0] for _ in range(SCORE_STEPS)]
    for question in questions:
        for score, needed, free in zip(question.scores, question.needed, question.free, strict=True):
            if not free:
                counts[score_step(score)][0] += 1
                counts[score_step(score)][1] += needed
    return tuple(
        CalibrationStep(low=step / SCORE_STEPS, candidates=count, needed=needed, share=_share(needed, count))
        for step, (count, needed) in enumerate(counts)
    )


# Labels


def read_labels(path: Path) -> tuple[ContextTest, ...]:
    """Return the labelled questions of a file: YAML in the form of context tests, or one such test as JSON per line.

    Raises:
        InvalidInputError: the file cannot be read.
        InvalidFileError: an entry cannot be used.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} cannot be read: {why_unreadable(error)}") from None
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        # JSON is YAML, so that each line is an entry of a list.
        text = "\n".join(f"- {line}" if line.strip() else "" for line in text.splitlines())
    found = parse_tests(path.name, text)
    if found.problems:
        raise InvalidFileError(path.name, tuple((problem.line, problem.reason) for problem in found.problems))
    return found.tests


async def asked_now(engine: Selecting, agent_name: str, labels: Sequence[ContextTest]) -> list[LabelledQuestion]:
    """Return labelled questions with the scores that they get now, from the agent as it is.

    Raises:
        AgentNotFoundError: no such agent.
    """
    agent = engine.agents.current(agent_name)
    servers = await engine.agent_items.servers(agent_name, settle_s=WAIT_S)
    found: list[LabelledQuestion] = []
    for label in labels:
        held = tuple(SessionItem(ref, "manual") for ref in label.added)
        candidates = gather(agent, servers, SessionState(id=SessionId(""), context_items=held)).candidates
        search = {**agent.settings.search, "enabled": True, "deadline_s": WAIT_S}
        selection = await engine.agent_items.select(
            label.message, candidates, search, recent=as_messages(label.history)
        )
        evidence = [(chosen.item.ref, chosen.evidence) for chosen in selection.chosen]
        evidence += [(left.ref, left.evidence) for left in selection.left_out if left.evidence is not None]
        name = f"{label.file}:{label.line}" if label.file else label.name
        by_domain = scored_candidates(evidence, selection.query)
        found += questions_of(name, by_domain, frozenset(label.must), frozenset(label.may or ()))
    return found


async def asked_before(engine: Records, remembered: Sequence[Remembered]) -> list[LabelledQuestion]:
    """Return past turns as labelled questions, with the scores that they had. Turns that are gone are passed over."""
    found: list[LabelledQuestion] = []
    for entry in remembered:
        try:
            past = await past_turn(engine, entry.session_id, entry.lesson.turn, with_catalog=False)
        except NotFoundError:
            continue
        held = {item.ref for item in past.context.items if item.include_mode != "agent" and item.sent}
        needed = frozenset((*entry.lesson.used, *entry.lesson.added)) - (held - set(entry.lesson.added))
        found += questions_of(f"{entry.session_id} {entry.lesson.turn}", scored(past.context), needed, frozenset())
    return found


def questions_of(
    name: str, candidates: Mapping[Domain, Scored], needed: frozenset[ItemRef], free: frozenset[ItemRef]
) -> list[LabelledQuestion]:
    """Return the domains of a labelled question, from what its candidates scored."""
    found = [_question(name, domain, own, needed, free) for domain, own in candidates.items()]
    known = {ref for question in found for ref in question.refs}
    lost = {domain: tuple(ref for ref in needed - known if domain_of(ref) == domain) for domain in DOMAINS}
    return [
        replace(question, lost=tuple(sorted(lost[question.domain], key=lambda ref: ref.sort_key))) for question in found
    ]


def _question(
    name: str, domain: Domain, candidates: Scored, needed: frozenset[ItemRef], free: frozenset[ItemRef]
) -> LabelledQuestion:
    order = candidates.under(SelectSettings()).order
    refs = tuple(candidates.measured.keys[position] for position in order)
    return LabelledQuestion(
        name=name,
        domain=domain,
        refs=refs,
        scores=tuple(float(candidates.scores[position]) for position in order),
        needed=tuple(ref in needed for ref in refs),
        free=tuple(ref in free and ref not in needed for ref in refs),
        small_talk=candidates.query.small_talk,
    )
