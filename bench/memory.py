"""Measure how well a long conversation is remembered, on public data and on planted facts.

    export WINDOWPANE_BENCH_DATA=/path/to/data
    python bench/memory.py             # recall, hard facts, follow-ups
    python bench/memory.py --fit       # prints the calibration to ship
    python bench/memory.py --large     # what a conversation of 10,000 messages costs

Recall: the share of the evidence that a token budget holds, mean over the questions of `locomo`. Parameters were chosen
on two of its five conversations (`CHOSEN_ON`) and are reported on the other three. Hard facts: conversations with
planted facts, summed up ten times without a model; a fact counts when it stands in the key facts or is recalled by a
question. Changes of mind and facts in plain words are those of `memory_cases.py`.
Follow-ups: how well `search/topic.py` tells a change of subject from a message that leans on the one before.

The data is not part of the repository. Vectors are kept in `WINDOWPANE_BENCH_CACHE` (default: a folder of the system's
temporary directory).
"""

import argparse
import json
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from numpy.typing import NDArray

from memory_cases import (
    CHANGES_DEVELOPED_ON,
    CHANGES_UNSEEN,
    FACTS_DEVELOPED_ON,
    FACTS_UNSEEN,
    PREFERENCES_DEVELOPED_ON,
    PREFERENCES_UNSEEN,
    SMALL_ANSWERS,
    SMALL_TALK,
    STILL_TRUE,
)
from remembered import Texts, cache_folder
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, Message, ModelReply, Step, UserMessage
from windowpane.memory.extract import extract
from windowpane.memory.recall import RecallCalibration, choose, recall
from windowpane.memory.recent import RECENT, due, recent_messages
from windowpane.search.base import SearchQuery
from windowpane.search.embedding.vectors import SCALE, Stored, stored
from windowpane.search.history import HistoryIndex
from windowpane.search.past import HistoryResult, Past
from windowpane.search.topic import new_topic
from windowpane.text.blocks import recall_block
from windowpane.text.tokens import count

CHOSEN_ON = ("conv-26", "conv-30")
REPORTED_ON = ("conv-41", "conv-42", "conv-43")
BUDGETS = (500, 1000, 2000)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

Floats = NDArray[np.float64]


# Recall.


class Talk:
    """One conversation of the set, with its questions and where their evidence stands."""

    def __init__(self, folder: Path, name: str, texts: Texts) -> None:
        rows = [row for row in _rows(folder / "items.jsonl") if row["server"] == name]
        position = {row["id"]: number for number, row in enumerate(rows)}
        asked = [row for row in _rows(folder / "queries.jsonl") if row["conv"] == name and row["gold"]]
        self.name = name
        self.texts = [f"{row['name']}: {row['text']}" for row in rows]
        self.messages = [
            UserMessage(content=text, seq=number + 1, at=BEGAN + timedelta(minutes=number))
            for number, text in enumerate(self.texts)
        ]
        self.tokens = np.array([count(text) + 1 for text in self.texts])
        self.questions = [row["query"] for row in asked]
        self.evidence = [[position[gold] for gold in row["gold"]] for row in asked]
        self.past = Past(texts.minilm.model)
        self.past.add(self.messages)
        self.past.fill(texts.load([*self.past.missing(len(self.texts)).values()]))
        self.alone = np.stack(texts.of(self.texts)).astype(np.float32) / SCALE
        self.vectors = texts.of(self.questions)
        self.results = [self.measure(q, v) for q, v in zip(self.questions, self.vectors, strict=True)]

    def measure(self, question: str, vector: Stored | None) -> HistoryResult:
        return self.past.measure(SearchQuery(question), vector, len(self.texts))

    def nearness(self, number: int) -> Floats:
        return (self.alone @ (self.vectors[number].astype(np.float32) / SCALE)).astype(float)


Ranking = Callable[[Talk, int], Floats]


def recency(talk: Talk, number: int) -> Floats:
    return np.arange(len(talk.texts), dtype=float)


def by_words(talk: Talk, number: int) -> Floats:
    return talk.results[number].words


def by_meaning(talk: Talk, number: int) -> Floats:
    return talk.nearness(number)


def plain_fusion(talk: Talk, number: int) -> Floats:
    return 0.7 * _standard(talk.nearness(number)) + 0.3 * _standard(_evidence(talk.results[number]))


def words_and_neighbours(talk: Talk, number: int) -> Floats:
    return talk.measure(talk.questions[number], None).fused


def ours(talk: Talk, number: int) -> Floats:
    return talk.results[number].fused


def shares(talk: Talk, ranking: Ranking, budget: int) -> list[float]:
    """Return for each question the share of its evidence among the best messages that fit the budget."""
    found: list[float] = []
    for number, gold in enumerate(talk.evidence):
        order = np.argsort(-ranking(talk, number), kind="stable")
        fitting = set(order[np.cumsum(talk.tokens[order]) <= budget].tolist())
        found.append(sum(position in fitting for position in gold) / len(gold))
    return found


async def recalled(talk: Talk, questions: Sequence[str], texts: Texts, budget: int = 1000) -> list[set[int]]:
    """Return for each question the positions of what is really recalled.

    That is the whole path: the last messages are sent anyway and are not searched, the gate applies, groups pay for
    their dates, long messages are cut.
    """
    index = HistoryIndex(texts)

    async def read(after: int) -> Sequence[Message]:
        return [message for message in talk.messages if message.seq > after]

    found: list[set[int]] = []
    for question in questions:
        recollection = await recall(
            index,
            SessionId(talk.name),
            question,
            read=read,
            message_count=len(talk.messages),
            recent=talk.messages[-RECENT:],
            budget_tokens=budget,
            deadline_s=600,
        )
        found.append({message.seq - 1 for group in recollection.recalled for message in group.messages})
    return found


def recalled_shares(talk: Talk, budget: int, texts: Texts) -> list[float]:
    """Return the share of the evidence that is really recalled, of what is not sent anyway."""
    behind = len(talk.messages) - RECENT
    asked = [
        (question, old)
        for question, gold in zip(talk.questions, talk.evidence, strict=True)
        if (old := [position for position in gold if position < behind])
    ]
    taken = anyio.run(recalled, talk, [question for question, _ in asked], texts, budget)
    return [
        sum(position in found for position in gold) / len(gold) for (_, gold), found in zip(asked, taken, strict=True)
    ]


def report_recall(title: str, talks: Sequence[Talk], texts: Texts) -> None:
    print(f"\n{title}: {', '.join(talk.name for talk in talks)}\n")
    print("| method | " + " | ".join(f"{budget:,} tokens" for budget in BUDGETS) + " |\n|---|---|---|---|")
    methods: list[tuple[str, Callable[[Talk, int], list[float]]]] = [
        ("most recent", lambda talk, budget: shares(talk, recency, budget)),
        ("BM25 alone", lambda talk, budget: shares(talk, by_words, budget)),
        ("MiniLM alone", lambda talk, budget: shares(talk, by_meaning, budget)),
        ("plain fusion 0.7/0.3", lambda talk, budget: shares(talk, plain_fusion, budget)),
        ("Windowpane without a model", lambda talk, budget: shares(talk, words_and_neighbours, budget)),
        ("Windowpane, ranking", lambda talk, budget: shares(talk, ours, budget)),
        ("**Windowpane, as recalled**", lambda talk, budget: recalled_shares(talk, budget, texts)),
    ]
    for name, method in methods:
        means = [100 * np.mean([share for talk in talks for share in method(talk, budget)]) for budget in BUDGETS]
        print(f"| {name} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |", flush=True)


def foreign(data: Path, each: int = 150) -> list[str]:
    """Return questions that no conversation of the set has anything to do with."""
    return [text for texts in unrelated(data, each).values() for text in texts]


def unrelated(data: Path, each: int) -> dict[str, list[str]]:
    """Return requests that no conversation of the set has anything to do with, by kind."""
    rng = random.Random(0)
    kinds = {
        "everyday requests": ("banking77", "apibank", "sgd", "metatool_single"),
        "general requests": ("metatool_aware", "stackfaq", "bfcl_pool"),
    }
    found: dict[str, list[str]] = {}
    for kind, names in kinds.items():
        for name in names:
            rows = _rows(data / name / "queries.jsonl") if (data / name).is_dir() else []
            # Of a set that has requests without a need, those; a request that follows others would not stand alone.
            fitting = [row for row in rows if not row.get("history") and len(row["query"]) <= 300]
            needless = [row["query"] for row in fitting if not row["gold"]]
            texts = needless if name == "metatool_aware" else [row["query"] for row in fitting]
            found.setdefault(kind, []).extend(rng.sample(texts, min(each, len(texts))))
    return found


def report_silence(talks: Sequence[Talk], data: Path, texts: Texts) -> None:
    print("\n| request | requests | nothing is recalled |\n|---|---|---|")
    everyone = [Talk(data / "locomo", name, texts) for name in (*CHOSEN_ON, *REPORTED_ON)]
    asked = {
        talk.name: {
            "of another conversation": [
                question
                for other in everyone
                if other.name != talk.name
                for question in random.Random(0).sample(other.questions, 40)
            ],
            **unrelated(data, 100),
            "the conversation's own": talk.questions,
        }
        for talk in talks
    }
    for kind in asked[talks[0].name]:
        silent = [not found for talk in talks for found in anyio.run(recalled, talk, asked[talk.name][kind], texts)]
        print(f"| {kind} | {len(silent)} | {100 * np.mean(silent):.1f} % |", flush=True)


def fit(talks: Sequence[Talk], questions: Sequence[str], texts: Texts) -> RecallCalibration:
    """Return the weights that fit these conversations, their questions and as many from elsewhere."""
    vectors = texts.of(questions)
    rows: list[Floats] = []
    labels: list[NDArray[np.bool_]] = []
    bare: list[Floats] = []
    bare_labels: list[NDArray[np.bool_]] = []
    for talk in talks:
        own = [
            (r, talk.measure(q, None), g) for r, q, g in zip(talk.results, talk.questions, talk.evidence, strict=True)
        ]
        other = [(talk.measure(q, v), talk.measure(q, None), []) for q, v in zip(questions, vectors, strict=True)]
        for result, by_words_alone, gold in [*own, *other]:
            top = np.argsort(-result.fused)[:40]
            top_words = np.argsort(-by_words_alone.fused)[:40]
            rows.append(np.column_stack([result.fused, result.meaning, result.coverage])[top])
            labels.append(np.isin(top, gold))
            alone = by_words_alone
            bare.append(np.column_stack([alone.fused, alone.coverage])[top_words])
            bare_labels.append(np.isin(top_words, gold))
    full = _logistic(np.concatenate(rows), np.concatenate(labels))
    words = _logistic(np.concatenate(bare), np.concatenate(bare_labels))
    return RecallCalibration(*(round(float(value), 2) for value in (*full, *words)))


def _logistic(x: Floats, y: NDArray[np.bool_], ridge: float = 1e-3) -> Floats:
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
    design = np.column_stack([np.ones(len(x)), (x - mean) / spread])
    # Evidence is rare; weighted as if half of all messages were some, a score of 0.5 means "as likely as not".
    weight = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
    beta = np.zeros(design.shape[1])
    penalty = ridge * np.diag([0.0, *np.ones(x.shape[1])])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weight * (p - y)) + penalty @ beta
        hessian = (design * (weight * p * (1 - p))[:, None]).T @ design + penalty
        beta -= np.linalg.solve(hessian, gradient)
    slopes = beta[1:] / spread
    return np.array([beta[0] - slopes @ mean, *slopes])


def _evidence(result: HistoryResult) -> Floats:
    return result.words / (1 - result.words)


def _standard(values: Floats) -> Floats:
    return (values - values.mean()) / (values.std() + 1e-9)


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.open()]


# Hard facts after ten compactions.

SYSTEMS = tuple(
    re.findall(
        r"\S+",
        """billing search login payroll mailer gateway archive scheduler inventory checkout analytics reporting profile
        catalogue translation upload thumbnail invoice webhook newsletter forum wiki calendar ticketing monitoring
        backup staging chat geocoder recommender""",
    )
)
STATED = (
    "The {what} of the {system} service is {value}.",
    "Please note that the {system} service has {value} as its {what}.",
    "By the way, for {system} we set the {what} to {value} yesterday.",
    "We decided to use {value} as the {what} of {system}.",
    "For the {system} service, the {what} must be {value}.",
)
ASKED = (
    "What is the {what} of the {system} service?",
    "Remind me, which {what} did we choose for {system}?",
    "I forgot the {what} for {system}. What was it?",
)
LATER_STATED = (
    "{system} now has {value} for its {what}.",
    "Just so you know: {value} is what {system} has as {what}.",
    "As for the {what}, {system} ended up with {value}.",
)
LATER_ASKED = (
    "Which {what} does the {system} service have?",
    "Can you give me the {what} for {system}, please?",
    "I need the {what} of {system} for a form.",
    "{system}: {what}?",
)
"""Written after the rules were. They showed one fault in `facts.subject`, which was then mended; nothing else."""

CHATTER = (
    "I am not sure how to go on from here, can you walk me through the next part in a bit more detail?",
    "That makes sense. Let us look at the way the pieces talk to each other before we change anything.",
    "My colleague wondered whether all of this could be a little simpler, and I think there is something to it.",
    "Fine. What would you look at first if you were in my place?",
)
ANSWERS = (
    "Good. A sensible next step is to write down what each part is responsible for and to look for overlaps. "
    "Most trouble of this kind comes from two parts that both believe that they own the same thing.",
    "I would start with the part that changes most often. If it is easy to test, the others can follow one by one, "
    "and nothing has to be switched over in a single night.",
    "Understood. Keep the old way running beside the new one for a while and compare what both of them say. "
    "When they agree for long enough, the old one can go.",
)


@dataclass(frozen=True)
class Planted:
    """A fact that was stated once, and a question about it."""

    seq: int
    value: str
    question: str


def _value(rng: random.Random, what: str) -> str:
    values: dict[str, Callable[[], str]] = {
        "port": lambda: f"port {rng.randint(1025, 65000)}",
        "config file": lambda: f"/etc/{rng.choice(SYSTEMS)}/conf-{rng.randint(100, 999)}.yaml",
        "health address": lambda: f"https://{rng.choice(SYSTEMS)}-{rng.randint(10, 99)}.example.com/health",
        "time limit": lambda: f"{rng.randint(11, 990)} ms",
        "owner": lambda: f"{rng.choice(('Anna', 'Bela', 'Carlo', 'Dunja'))} {rng.choice(('Novak', 'Silva', 'Ito'))}",
        "ticket": lambda: f"OPS-{rng.randint(1000, 9999)}",
        "release date": lambda: f"{rng.randint(1, 28)} {rng.choice(('May', 'June', 'October'))} 2027",
        "monthly budget": lambda: f"${rng.randint(11, 99)},{rng.randint(100, 999)}",
        "start command": lambda: f"`run-{rng.choice(SYSTEMS)} --workers {rng.randint(2, 64)}`",
        "feature switch": lambda: f"enable_{rng.choice(SYSTEMS)}_{rng.randint(10, 99)}",
        "contact": lambda: f"team{rng.randint(10, 99)}@example.com",
        "library version": lambda: f"v{rng.randint(1, 9)}.{rng.randint(0, 20)}.{rng.randint(0, 20)}",
    }
    return values[what]()


WHAT = (
    "port", "config file", "health address", "time limit", "owner", "ticket", "release date", "monthly budget",
    "start command", "feature switch", "contact", "library version",
)  # fmt: skip


def planted_talk(seed: int, facts_per_message: int, *, later: bool = False) -> tuple[list[Message], list[Planted]]:
    """Return a conversation that is long enough for ten compactions, and what was planted in it."""
    rng = random.Random(seed)
    about = rng.sample([(what, system) for what in WHAT for system in SYSTEMS], 200)
    messages: list[Message] = []
    planted: list[Planted] = []
    for seq in range(1, 200, 2):
        stated: list[str] = []
        for _ in range(facts_per_message if seq % 4 == 1 else 0):
            what, system = about.pop()
            value = _value(rng, what)
            stated.append(rng.choice(LATER_STATED if later else STATED).format(what=what, system=system, value=value))
            question = rng.choice(LATER_ASKED if later else ASKED).format(what=what, system=system)
            planted.append(Planted(seq, value, question))
        at = BEGAN + timedelta(minutes=seq)
        messages.append(UserMessage(content=" ".join((*stated, rng.choice(CHATTER))), seq=seq, at=at))
        reply = ModelReply((Step(text=rng.choice(ANSWERS)),))
        messages.append(AssistantMessage(model_reply=reply, seq=seq + 1, at=at))
    return messages, planted


async def surviving(seed: int, facts_per_message: int, later: bool, texts: Texts) -> tuple[list[bool], list[bool]]:
    """Return for each fact that ten compactions covered whether the key facts have it and whether it is recalled."""
    messages, planted = planted_talk(seed, facts_per_message, later=later)
    summary, compactions, said = None, 0, messages[:0]
    for end in range(2, len(messages) + 1, 2):
        said = messages[:end]
        found = due(said, summary)
        if found is not None:
            summary, compactions = extract(found) or summary, compactions + 1
        if compactions == 10:
            break
    assert summary is not None
    assert compactions == 10
    shown = recent_messages(said, summary)
    index = HistoryIndex(texts)

    async def read(after: int) -> Sequence[Message]:
        return [message for message in said if message.seq > after]

    covered = [fact for fact in planted if fact.seq <= summary.through_seq]
    in_facts = [any(fact.value in key_fact for key_fact in summary.key_facts) for fact in covered]
    in_recall: list[bool] = []
    for fact in covered:
        found = await recall(
            index, SessionId("s"), fact.question, read=read, message_count=len(said), recent=shown, deadline_s=600
        )
        in_recall.append(any(fact.value in str(message) for group in found.recalled for message in group.messages))
    return in_facts, in_recall


def report_facts(texts: Texts) -> None:
    """Print what is left of planted facts."""
    print("\nHard facts after ten compactions without a model, three conversations each\n")
    print("| wording | facts in every second user message | facts | in the key facts | recalled when asked | either |")
    print("|---|---|---|---|---|---|")
    for name, later, seeds in (("first", False, (1, 2, 3)), ("written later", True, (11, 12, 13))):
        for per_message in (1, 2, 4):
            runs = [anyio.run(surviving, seed, per_message, later, texts) for seed in seeds]
            in_facts = [value for found, _ in runs for value in found]
            in_recall = [value for _, found in runs for value in found]
            either = [a or b for a, b in zip(in_facts, in_recall, strict=True)]
            figures = " | ".join(f"{100 * np.mean(values):.1f}" for values in (in_facts, in_recall, either))
            print(f"| {name} | {per_message} | {len(either)} | {figures} |", flush=True)


# Changes of mind, and facts in plain words.


def talk_with(sentences: Sequence[str], seed: int, turns: int = 110) -> list[Message]:
    """Return a conversation of small talk in which a user says these sentences, in this order, once each."""
    rng = random.Random(seed)
    at_turns = sorted(rng.sample(range(turns - 10), len(sentences)))
    messages: list[Message] = []
    for turn in range(turns):
        said = [rng.choice(SMALL_TALK)]
        if turn in at_turns:
            said.insert(rng.randrange(2), sentences[at_turns.index(turn)])
        at, seq = BEGAN + timedelta(hours=turn), 2 * turn + 1
        messages.append(UserMessage(content=" ".join(said), turn=turn + 1, seq=seq, at=at))
        reply = ModelReply((Step(text=rng.choice(SMALL_ANSWERS)),))
        messages.append(AssistantMessage(model_reply=reply, turn=turn + 1, seq=seq + 1, at=at))
    return messages


async def recalled_text(messages: Sequence[Message], question: str, texts: Texts) -> str:
    """Return what a question makes the model read again."""

    async def read(after: int) -> Sequence[Message]:
        return [message for message in messages if message.seq > after]

    found = await recall(
        HistoryIndex(texts),
        SessionId("s"),
        question,
        read=read,
        message_count=len(messages),
        recent=recent_messages(messages, None)[-RECENT:],
        deadline_s=600,
    )
    return "\n".join(recall_block(group).text for group in found.recalled)


def report_changes(texts: Texts) -> None:
    """Print what comes back after a change of mind."""
    print("\nChanges of mind\n\n| cases | new value comes back | old value comes last | old value is marked |")
    print("|---|---|---|---|")
    for name, cases in (("developed on", CHANGES_DEVELOPED_ON), ("unseen", CHANGES_UNSEEN)):
        back, last, marked = 0, 0, 0
        for seed, case in enumerate(cases):
            text = anyio.run(recalled_text, talk_with((case.first, case.later), seed), case.question, texts)
            back += case.new in text
            last += case.old in text and text.rfind(case.old) > text.rfind(case.new)
            marked += any(", later changed in turn " in line and case.old in line for line in text.splitlines())
        print(f"| {name}, {len(cases)} | {back} | {last} | {marked} |", flush=True)
    wrong = sum(
        ", later changed in turn "
        in anyio.run(recalled_text, talk_with((pair.first, pair.later), seed), pair.question, texts)
        for seed, pair in enumerate(STILL_TRUE)
    )
    print(f"\nOf {len(STILL_TRUE)} pairs that are both still true, {wrong} are marked as changed.")


def report_planted() -> None:
    """Print what a summary without a model keeps of facts in plain words among small talk."""
    print("\nFacts in plain words, summed up without a model\n")
    print("| half | facts and preferences kept | preferences in their section | lost and not listed | key facts |")
    print("|---|---|---|---|---|")
    for name, stated, standing in (
        ("developed on", FACTS_DEVELOPED_ON, PREFERENCES_DEVELOPED_ON),
        ("unseen", FACTS_UNSEEN, PREFERENCES_UNSEEN),
    ):
        everything = [*stated, *standing]
        random.Random(0).shuffle(everything)
        messages = talk_with([fact.text for fact in everything], 0)
        summary = None
        for end in range(2, len(messages) + 1, 2):
            found = due(messages[:end], summary)
            summary = (extract(found) if found else None) or summary
        assert summary is not None
        kept = "\n".join((*summary.key_facts, *summary.preferences))
        in_section = sum(any(fact.value in text for text in summary.preferences) for fact in standing)
        lost = [fact for fact in everything if fact.value not in kept]
        unlisted = sum(all(fact.value not in text for text in summary.evicted) for fact in lost)
        share = f"{len(everything) - len(lost)} of {len(everything)}"
        print(f"| {name} | {share} | {in_section} of {len(standing)} | {unlisted} | {len(summary.key_facts)} |")


# Follow-ups and changes of subject.


def report_follow_ups(data: Path) -> None:
    """Print how well a change of subject is told from a follow-up."""
    print("\nChange of subject, as `search/topic.py` judges it\n")
    print("| set | turns | changes | AUC | F1 at a threshold chosen elsewhere |\n|---|---|---|---|---|")
    train, test = _tiage(data / "tiage" / "train.json"), _tiage(data / "tiage" / "test.json")
    sgd = [
        (new_topic(row["query"], [turn["content"] for turn in row["history"]]), bool(row["switch"]))
        for row in _rows(data / "sgd" / "queries.jsonl")
        if row["history"] and row["gold"]
    ]
    for name, chosen_on, found in (
        ("tiage, test (threshold from train)", train, test),
        ("sgd, every second turn (threshold from the others)", sgd[::2], sgd[1::2]),
    ):
        scores, labels = (np.array(column) for column in zip(*found, strict=True))
        threshold = max((score for score, _ in chosen_on), key=lambda score: _f1(chosen_on, score))
        figures = f"{100 * _auc(scores, labels):.1f} | {100 * _f1(found, threshold):.1f}"
        print(f"| {name} | {len(found)} | {int(labels.sum())} | {figures} |")


def _tiage(file: Path) -> list[tuple[float, bool]]:
    found: list[tuple[float, bool]] = []
    for turns in json.loads(file.read_text()).values():
        for number in range(1, len(turns)):
            earlier = range(max(0, number - 4), number)
            before = [turns[back][0] for back in earlier]
            found.append((new_topic(turns[number][0], before), turns[number][1] == "1"))
    return found


def _auc(scores: Floats, labels: NDArray[np.bool_]) -> float:
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    for value in np.unique(scores):
        same = scores == value
        ranks[same] = ranks[same].mean()
    positives = int(labels.sum())
    return float((ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives)))


def _f1(found: Sequence[tuple[float, bool]], threshold: float) -> float:
    right = sum(change for score, change in found if score >= threshold)
    said = sum(score >= threshold for score, _ in found)
    return 2 * right / max(1, said + sum(change for _, change in found))


# What a long conversation costs.


async def report_large(texts: Texts, count_: int = 10_000) -> None:
    """Print what searching a long conversation costs. Vectors are made up: only their number matters."""
    rng = random.Random(0)
    messages: list[Message] = []
    while len(messages) < count_:
        more, _ = planted_talk(rng.randrange(10**9), 2)
        for message in more:
            messages.append(UserMessage(content=_said(message), seq=len(messages) + 1, at=message.at))
    del messages[count_:]
    past = Past(texts.minilm.model)
    began = time.perf_counter()
    past.add(messages)
    taken_in = time.perf_counter()
    missing = past.missing(count_)
    vectors = np.random.default_rng(0).standard_normal((len(missing), 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    laid_out = time.perf_counter()
    past.fill(dict(zip(missing, stored(vectors), strict=True)))
    filled = time.perf_counter()
    question = texts.of(["What is the port of the billing service?"])[0]
    times: list[float] = []
    for _ in range(20):
        start = time.perf_counter()
        asked = "What is the port of the billing service?"
        choose(past.measure(SearchQuery(asked), question, count_), asked)
        times.append(time.perf_counter() - start)
    some = list(missing.values())[:64]
    start = time.perf_counter()
    texts.minilm.embed_now(some)
    each_ms = 1000 * (time.perf_counter() - start) / len(some)
    print(f"\nA conversation of {count_:,} messages ({past.passage_count:,} passages)\n\n| what | cost |\n|---|---|")
    print(f"| take all of it in, once per process | {taken_in - began:.2f} s |")
    print(f"| lay out its passages and their keys, once | {laid_out - taken_in:.2f} s |")
    print(f"| fill in known vectors, once | {filled - laid_out:.2f} s |")
    print(f"| measure and choose, each turn (median) | {1000 * float(np.median(times)):.1f} ms |")
    background_s = each_ms * past.passage_count / 1000
    print(f"| embed one passage | {each_ms:.1f} ms, so {background_s:.0f} s in the background, once |")


def _said(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        return message.model_reply.text
    return message.content if isinstance(message, UserMessage) else ""


# What is run.


def main() -> None:
    """Print tables for what is in the data folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    texts = Texts(cache_folder())
    if arguments.large:
        anyio.run(report_large, texts)
        return
    named = os.environ.get("WINDOWPANE_BENCH_DATA")
    if not named:
        report_facts(texts)
        report_changes(texts)
        report_planted()
        print("\nRecall and follow-ups skipped: WINDOWPANE_BENCH_DATA does not name a folder with the data.")
        return
    data = Path(named)
    chosen_on = [Talk(data / "locomo", name, texts) for name in CHOSEN_ON]
    if arguments.fit:
        print(fit(chosen_on, foreign(data), texts))
        return
    report_recall("Parameters chosen on", chosen_on, texts)
    report_silence(chosen_on, data, texts)
    reported_on = [Talk(data / "locomo", name, texts) for name in REPORTED_ON]
    report_recall("Unseen", reported_on, texts)
    report_silence(reported_on, data, texts)
    report_facts(texts)
    report_changes(texts)
    report_planted()
    report_follow_ups(data)


if __name__ == "__main__":
    main()
