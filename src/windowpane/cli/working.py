"""`windowpane context set`, `get` and `clear`: what a session is working on."""

from windowpane.cli.door import with_engine
from windowpane.cli.naming import find_session
from windowpane.cli.screen import Screen
from windowpane.context.sets import ChangeMode, SetChange
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError
from windowpane.settings import Settings
from windowpane.tools.context_tools import shown


def set_context(settings: Settings, session: str, set_name: str, items: list[str], mode: ChangeMode) -> None:
    """Change one set and print what became of it.

    Raises:
        SessionNotFoundError: no such session.
        InvalidInputError: the change may not be made; nothing is changed.
    """

    async def change(engine: Engine) -> SetChange:
        return await engine.set_context(await find_session(engine, session), set_name, items, mode)

    changed = with_engine(settings, change)
    if changed.refused:
        raise InvalidInputError(changed.reply)
    Screen().line(changed.text)


def get_context(settings: Settings, session: str, set_name: str | None) -> None:
    """Print every set, or one of them, as JSON.

    Raises:
        SessionNotFoundError: no such session.
    """

    async def read(engine: Engine) -> str:
        return shown(await engine.get_context(await find_session(engine, session)), set_name)

    Screen().line(with_engine(settings, read))
