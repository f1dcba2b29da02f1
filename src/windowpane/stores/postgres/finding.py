"""The index of a PostgreSQL database: `tsvector` over the fingerprints of words."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from windowpane.context.ids import SessionId
from windowpane.stores.finding import Behind, IndexedText, IndexHit, TextIndex, WantedTexts
from windowpane.stores.postgres.connections import DriverConnection
from windowpane.stores.postgres.log import name_from_sql, name_in_sql, within_bigint

T = TypeVar("T")

_ALL = "windowpane.document"
_NEWEST = 2_000
"""How many of the newest documents are looked through before all of them are asked for."""


class _Runs(Protocol):
    def __call__(self, work: Callable[[DriverConnection], Coroutine[Any, Any, T]], /) -> Awaitable[T]: ...


class PostgresIndex(TextIndex):
    """The index of one database; `run` runs work on it."""

    def __init__(self, run: _Runs) -> None:
        self._run = run

    async def behind(self, *, since: datetime | None = None, limit: int) -> list[Behind]:
        """Return sessions with events that were not looked at; see `TextIndex.behind`."""

        async def read(db: DriverConnection) -> list[tuple[str, datetime, int, int]]:
            return await db.fetch(
                """SELECT id, touched_at, indexed_seq, erased_seq FROM windowpane.session
                   WHERE ($1::timestamptz IS NULL OR touched_at >= $1) AND seen_seq < last_seq
                   ORDER BY touched_at DESC, id DESC LIMIT $2""",
                since,
                limit,
            )

        return [
            Behind(SessionId(name_from_sql(name)), touched, indexed, erased)
            for name, touched, indexed, erased in await self._run(read)
        ]

    async def index(
        self, session: Behind, documents: Sequence[IndexedText], *, indexed_seq: int, seen_seq: int
    ) -> bool:
        """Keep documents; see `TextIndex.index`."""

        async def write(db: DriverConnection) -> bool:
            return await db.fetchval(
                "SELECT windowpane.index_documents($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                name_in_sql(session.id),
                session.erased_seq,
                indexed_seq,
                seen_seq,
                [document.seq for document in documents],
                [document.place for document in documents],
                [document.turn for document in documents],
                [document.at for document in documents],
                [document.tokens for document in documents],
                [" ".join(sorted(document.terms)) for document in documents],
            )

        return await self._run(write)

    async def find(self, wanted: WantedTexts, *, limit: int, before: int | None = None) -> list[IndexHit]:
        """Return what is found; see `TextIndex.find`."""
        document: dict[str, Any] = {
            "terms @@ ${}::tsquery": " & ".join(sorted(wanted.terms)) or None,
            "session = ${}": None if wanted.session_id is None else name_in_sql(wanted.session_id),
            "tokens >= ${}": None if wanted.least_tokens is None else within_bigint(wanted.least_tokens),
            "tokens <= ${}": None if wanted.most_tokens is None else within_bigint(wanted.most_tokens),
            "place < ${}": None if before is None else within_bigint(before),
        }
        session: dict[str, Any] = {
            "session.owner = ${}": None if wanted.owner is None else name_in_sql(wanted.owner),
            "session.agent = ${}": None if wanted.agent is None else name_in_sql(wanted.agent),
        }
        document = {condition: value for condition, value in document.items() if value is not None}
        session = {condition: value for condition, value in session.items() if value is not None}
        values = (*document.values(), *session.values(), limit)
        asked = _numbered(document, 1)
        where = _numbered(session, 1 + len(document))
        place = "true" if before is None else f"place < ${len(document)}"

        # A frequent word is among the newest documents. For a rare one the index of words is asked, by itself: the
        # planner would rather walk back through all documents, which takes long when few have the word.
        newest = f"(SELECT * FROM windowpane.document WHERE {place} ORDER BY place DESC LIMIT {_NEWEST}) AS newest"  # noqa: S608 – ours
        ways = ((newest, ""), (_ALL, "")) if wanted.terms else ((_ALL, "NOT"),)

        async def read(db: DriverConnection) -> list[tuple[str, int, int, datetime, int, int]]:
            found: list[tuple[str, int, int, datetime, int, int]] = []
            for source, apart in ways:
                found = await db.fetch(
                    f"""WITH found AS {apart} MATERIALIZED
                            (SELECT session, turn, seq, at, tokens, place FROM {source} WHERE {asked})
                        SELECT session.id, found.turn, found.seq, found.at, found.tokens, found.place
                        FROM found JOIN windowpane.session ON session.id = found.session
                        WHERE {where} ORDER BY found.place DESC LIMIT ${len(values)}""",  # noqa: S608 – conditions of ours
                    *values,
                )
                if len(found) == limit:
                    break
            return found

        return [
            IndexHit(SessionId(name_from_sql(name)), turn, seq, at, tokens, place)
            for name, turn, seq, at, tokens, place in await self._run(read)
        ]


def _numbered(conditions: dict[str, Any], first: int) -> str:
    """Return conditions as SQL, their parameters numbered from one."""
    return " AND ".join(conditions).format(*range(first, first + len(conditions))) or "true"
