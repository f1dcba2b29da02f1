"""Analytics in a PostgreSQL database that all workers share.

The tables stand in a schema of their own, one for each version, so that workers of two versions do not disturb one
another while one replaces the other. The driver waits for its answers: counting runs in threads anyway.

Each use is one transaction that names its schema itself, so a pooler may stand in between.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from select import select
from threading import RLock
from typing import Any, LiteralString, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from zlib import crc32

import psycopg
from psycopg.adapt import Buffer, Loader

from windowpane.errors import InvalidSettingError, StoreUnavailableError
from windowpane.insight.analytics.tables import OTHERS, TABLES, VERSION, Dialect, creating

FIRST_VERSION = 5
"""Before it there were only files."""

CONNECT_S = 5
ANSWER_MS = 30_000

DIALECT = Dialect("BIGINT", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", 'TEXT COLLATE "C"')


class PostgresDatabase:
    """A schema of a database. Any thread may use it, one at a time. `?name=` gives each of several stores its own.

    Raises:
        InvalidSettingError: the URL cannot be used.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        name = given.pop("name", "")
        if parts.scheme not in ("postgres", "postgresql"):
            raise InvalidSettingError("analytics_url", "it begins with postgresql://")
        if not re.fullmatch(r"[a-z0-9_]{0,32}", name):
            raise InvalidSettingError("analytics_url", "a name has at most 32 characters of a-z, 0-9 and _")
        self._url = urlunsplit(parts._replace(query=urlencode({"connect_timeout": CONNECT_S, **given})))
        self._shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))
        self._suffix = f"_{name}" if name else ""
        self._lock = RLock()
        self._connection: psycopg.Connection[Any] | None = None

    @contextmanager
    def reading(self) -> Generator["_Cursor"]:
        """Open for statements that need no more than themselves."""
        with self._transaction() as cursor:
            yield cursor

    @contextmanager
    def writing(self) -> Generator["_Cursor"]:
        """Open a transaction that no other writes beside."""
        with self._transaction(then=f"SELECT pg_advisory_xact_lock({crc32(self._schema(VERSION).encode())})") as cursor:
            yield cursor

    def clear(self) -> None:
        """Make every table empty, and remove those of older versions."""
        with self.writing() as db:
            db.execute(f"TRUNCATE {', '.join((*OTHERS, *TABLES))} RESTART IDENTITY")
            for version in range(FIRST_VERSION, VERSION):
                db.execute(f"DROP SCHEMA IF EXISTS {self._schema(version)} CASCADE")

    def size_bytes(self) -> int:
        """Return how large the tables and their indexes are."""
        with self.reading() as db:
            ((size,),) = db.execute(
                """SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
                WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"""
            )
        return size

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _schema(self, version: int) -> str:
        return f"windowpane_analytics_{version}{self._suffix}"

    @contextmanager
    def _transaction(self, *, then: str = "") -> Generator["_Cursor"]:
        schema = self._schema(VERSION)
        begin = f"BEGIN; SET LOCAL search_path TO {schema}; SET LOCAL statement_timeout = {ANSWER_MS}; {then}"
        with self._lock:
            try:
                connection = self._connected()
                with connection.cursor() as cursor:
                    cursor.execute(_ours(begin))
                    try:
                        yield _Cursor(cursor)
                    except BaseException:
                        connection.rollback()
                        raise
                    connection.commit()
            except psycopg.Error as error:
                self.close()
                said = " ".join(str(error).split()) or type(error).__name__
                raise StoreUnavailableError(f"the analytics store {self._shown}: {said}") from error

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is not None and select([self._connection], [], [], 0)[0]:
            # Nothing was asked, so what the server says is that it ends the connection.
            self.close()
        if self._connection is None:
            opened = psycopg.Connection[Any].connect(
                self._url,
                autocommit=True,
                prepare_threshold=None,
                application_name="windowpane analytics",
                tcp_user_timeout=ANSWER_MS,
            )
            opened.adapters.register_loader("numeric", _WholeNumber)
            try:
                _create(opened, self._schema(VERSION))
            except BaseException:
                opened.close()
                raise
            self._connection = opened
        return self._connection


class _Cursor:
    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        self._cursor.execute(_ours(sql.replace("?", "%s")), values)
        return self._cursor.fetchall() if self._cursor.description else []

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        self._cursor.executemany(_ours(sql.replace("?", "%s")), rows)


class _WholeNumber(Loader):
    """PostgreSQL adds whole numbers up to a `numeric`; ours stay whole."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data))


def _ours(sql: str) -> LiteralString:
    """Return a statement that is made of names and numbers of ours."""
    return cast("LiteralString", sql)


def _create(connection: psycopg.Connection[Any], schema: str) -> None:
    """Create the tables, if no other process did."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_ours(f"SELECT pg_advisory_xact_lock({crc32(schema.encode())}), to_regclass('{schema}.name')"))
        if (cursor.fetchone() or (None, None))[1] is not None:
            return
        cursor.execute(_ours(f"CREATE SCHEMA IF NOT EXISTS {schema}; SET LOCAL search_path TO {schema}"))
        for statement in creating(DIALECT):
            cursor.execute(_ours(statement))
