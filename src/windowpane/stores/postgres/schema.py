"""The schema `windowpane`: numbered migrations, applied once, by the first worker that comes.

A migration is a file of plain SQL in `migrations/`. All that are missing are applied in one transaction under
an advisory lock, so workers that start together do not meet, and a worker that dies leaves nothing half done. A
database that a newer version has migrated is refused and left as it is.
"""

from collections.abc import Sequence
from importlib.resources import files

from windowpane.errors import StoreTooNewError, StoreUnavailableError
from windowpane.stores.postgres.connections import DriverConnection, ServerAddress

_LOCK = 0x57504E45
_OLD_WRITER = "7 days"

# The tables themselves: what `to_regclass` says may be from before the lock was waited for.
_HAS_SCHEMA = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'windowpane')"
_HAS_MIGRATIONS = """SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'windowpane' AND relname = 'migration')"""


async def migrate(url: ServerAddress, connection: DriverConnection) -> None:
    """Bring the database to the current schema.

    Raises:
        StoreTooNewError: a newer version wrote it.
        StoreUnavailableError: it cannot hold what is to be kept.
    """
    encoding: str = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreUnavailableError(f"{url.shown} has the encoding {encoding}; name a database in UTF8")
    migrations = _migrations()
    if await _version(connection) != len(migrations):
        await _apply(url, connection, migrations)
    await connection.execute(f"DELETE FROM windowpane.writer WHERE at < now() - interval '{_OLD_WRITER}'")  # noqa: S608


async def _apply(url: ServerAddress, connection: DriverConnection, migrations: Sequence[str]) -> None:
    async with connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        version = await _version(connection)
        if version > len(migrations):
            raise StoreTooNewError(url.shown, version, len(migrations))
        if not await connection.fetchval(_HAS_SCHEMA):
            await connection.execute("CREATE SCHEMA windowpane")
        if version == 0:
            await connection.execute(
                "CREATE TABLE windowpane.migration (number integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"
            )
        for number, statements in enumerate(migrations[version:], version + 1):
            await connection.execute(statements)
            await connection.execute("INSERT INTO windowpane.migration (number) VALUES ($1)", number)


async def _version(connection: DriverConnection) -> int:
    if not await connection.fetchval(_HAS_MIGRATIONS):
        return 0
    return await connection.fetchval("SELECT coalesce(max(number), 0) FROM windowpane.migration")


def _migrations() -> list[str]:
    folder = files("windowpane.stores.postgres") / "migrations"
    named = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".sql"))
    return [file.read_text(encoding="utf-8") for _, file in named]
