"""The form of the analytics: which roll-ups there are, and what each of them counts.

Each number is added up four times: for its day and for its month, for its owner and for everyone. So any stretch of
time is a few whole months and the days around them, and everyone's numbers are read as fast as one owner's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from windowpane.insight.analytics.count import SCORE_STEPS, WAYS_IN

VERSION = 7
"""Counts of another version are not read; everything is counted again."""


@dataclass(frozen=True, slots=True)
class Table:
    """A roll-up: what tells its rows apart beside owner, day, agent and model, and what they count.

    Of the counters in `latest` it is also kept on which day they last grew.
    """

    detail: tuple[str, ...]
    counters: tuple[str, ...]
    latest: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the columns that tell rows apart."""
        return ("owner", "span", "day", "agent", "model", *self.detail)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return all columns: the keys, the counters, and the days on which some of these last grew."""
        return (*self.keys, *(f"n_{counter}" for counter in self.counters), *(f"d_{name}" for name in self.latest))


TABLES: Mapping[str, Table] = {
    "turn": Table(
        (),
        (
            "turns",
            "begun",
            "active",
            "calls",
            "request_tokens",
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "cost_nano",
            "turns_without_price",
            "calls_without_usage",
            "calls_without_price",
            "tool_calls",
            "tool_errors",
            "selected",
            "selected_used",
            "selected_probably",
            "missed",
            "compared",
            "prefix_bytes",
            "kept_bytes",
            "rebases",
            "rebase_nano",
            "expected_tokens",
            "expected_read_tokens",
            "collapses",
            "missing_tokens",
            "follow_ups",
            "small_talk",
            "degraded",
        ),
    ),
    "call": Table(
        ("purpose",),
        (
            "calls",
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "cost_nano",
            "without_usage",
            "without_price",
        ),
    ),
    "part": Table(("kind",), ("requests", "tokens", "cost_nano", "cut")),
    "item": Table(
        ("item",),
        (
            "included",
            *WAYS_IN,
            "tokens",
            "cost_nano",
            "used",
            "called",
            "cited",
            "quoted",
            "drawn_upon",
            "probably",
            "no_trace",
            "no_trace_tokens",
            "unused_tokens",
            "considered",
            "selected",
            "not_sent",
            "added_by_hand",
            "removed_by_hand",
            "scores",
            *(f"{fate}_{step}" for fate in ("selected", "left_out", "used") for step in range(SCORE_STEPS)),
        ),
        ("included", "used"),
    ),
    "rebase": Table(("kind", "item"), ("rebases", "rewritten_tokens", "cost_nano")),
    "latency": Table(("stage", "step"), ("count", "total_ms")),
    "tally": Table(("kind", "tallied"), ("count",)),
    "site": Table(("site",), ("given", "used")),
}
EVERYONE = 0
"""The owner of what all owners have together."""

DAY, MONTH = 0, 1
"""What span of time a row is about. That of a month stands at its first day."""

NAMES = ("owner", "agent", "model", "kind", "item", "stage", "tallied", "site", "purpose")
"""Columns that hold the number of a name."""


OTHERS = ("name", "mark", "claim", "session", "lesson")
"""The tables that are no roll-ups."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine writes what differs: types of numbers, of keys that it gives, and of texts that sort by code point.

    `keyed` follows the tables that are read by their key alone.
    """

    number: str
    given_key: str
    text: str
    keyed: str = ""


def creating(dialect: Dialect) -> list[str]:
    """Return the statements that create all tables."""
    number, key, text = dialect.number, dialect.given_key, dialect.text
    statements = [
        f"CREATE TABLE name (pk {key}, text {text} NOT NULL UNIQUE)",
        f"CREATE TABLE mark (name {text} PRIMARY KEY, value {number} NOT NULL){dialect.keyed}",
        f"CREATE TABLE claim (session {text} PRIMARY KEY, holder {text} NOT NULL, until {number} NOT NULL)"
        f"{dialect.keyed}",
        f"""CREATE TABLE session (
            pk {key}, id {text} NOT NULL UNIQUE, gone {number} NOT NULL, created {number} NOT NULL,
            owner {number} NOT NULL, agent {number} NOT NULL, seq {number} NOT NULL, turn {number} NOT NULL,
            turn_seq {number} NOT NULL, day {number} NOT NULL, model {text} NOT NULL, record {text},
            seen_seq {number} NOT NULL, texts_bytes {number} NOT NULL)""",
        "CREATE INDEX session_owner ON session (owner, agent)",
        "CREATE INDEX session_created ON session (created)",
        f"""CREATE TABLE lesson (
            pk {key}, session {number} NOT NULL, turn {number} NOT NULL, seq {number} NOT NULL,
            day {number} NOT NULL, used {text} NOT NULL, added {text} NOT NULL, UNIQUE (session, turn))""",
    ]
    for name, table in TABLES.items():
        columns = ", ".join(f"{column} {number} NOT NULL" for column in table.columns)
        statements.append(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({', '.join(table.keys)})){dialect.keyed}")
    return statements


def adding(name: str) -> str:
    """Return the statement that adds a row to a roll-up, or its numbers to the row that is there."""
    table = TABLES[name]
    sums = [f"n_{counter} = {name}.n_{counter} + excluded.n_{counter}" for counter in table.counters]
    sums += [
        f"d_{day} = CASE WHEN excluded.d_{day} > {name}.d_{day} THEN excluded.d_{day} ELSE {name}.d_{day} END"
        for day in table.latest
    ]
    return (
        f"INSERT INTO {name} ({', '.join(table.columns)}) VALUES ({', '.join('?' * len(table.columns))}) "  # noqa: S608 – names of ours
        f"ON CONFLICT ({', '.join(table.keys)}) DO UPDATE SET {', '.join(sums)}"
    )
