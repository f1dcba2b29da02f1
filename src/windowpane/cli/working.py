"""`windowpane context set`, `get` and `clear`: what a session is working on."""

from typing import TYPE_CHECKING

from windowpane.cli.door import Place, ask
from windowpane.cli.naming import find_session, find_there
from windowpane.cli.screen import Screen
from windowpane.context.sets import ChangeMode, ContextSets
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError
from windowpane.tools.context_tools import shown

if TYPE_CHECKING:
    from windowpane.client import Client


def set_context(place: Place, session: str, set_name: str, items: list[str], mode: ChangeMode) -> None:
    """Change one set and print what became of it.

    Raises:
        SessionNotFoundError: no such session.
        InvalidInputError: the change may not be made; nothing is changed.
    """

    async def here(engine: Engine) -> str:
        changed = await engine.set_context(await find_session(engine, session), set_name, items, mode)
        if changed.refused:
            raise InvalidInputError(changed.reply)
        return changed.text

    async def there(client: "Client") -> str:
        changed = await client.set_context((await find_there(client, session)).id, set_name, items, mode)
        return "\n".join((changed.reply, *changed.warnings))

    Screen().line(ask(place, here, there))


def get_context(place: Place, session: str, set_name: str | None) -> None:
    """Print every set, or one of them, as JSON.

    Raises:
        SessionNotFoundError: no such session.
    """

    async def here(engine: Engine) -> ContextSets:
        return await engine.get_context(await find_session(engine, session))

    async def there(client: "Client") -> ContextSets:
        return (await find_there(client, session)).context

    Screen().line(shown(ask(place, here, there), set_name))
