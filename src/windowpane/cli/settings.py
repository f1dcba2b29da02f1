"""The settings of a command: its options, then the environment, then the defaults.

`windowpane.settings` takes a third of a second to load, so it is imported when a command runs, not for its help.
"""

import os
from typing import TYPE_CHECKING, Any

import typer

from windowpane.errors import InvalidSettingError

if TYPE_CHECKING:
    from windowpane.settings import Settings


def local_settings(why: str, **given: Any) -> "Settings":
    """Return the settings of a command that only works on this machine, because of `why`.

    Raises:
        BadParameter: a server is to run it.
        InvalidSettingError: a value cannot be used.
    """
    if server_url():
        raise typer.BadParameter(f"this does not work with a server: {why}. Remove --url and WINDOWPANE_URL")
    return settings(**given)


def settings(**given: Any) -> "Settings":
    """Return the settings of this process and log to stderr, away from what a command prints.

    Only warnings and errors are logged unless a level is set. What that takes is loaded with the first of them.

    Raises:
        InvalidSettingError: a value cannot be used.
    """
    from pydantic import ValidationError

    from windowpane.serving.logs import configure_logging_later
    from windowpane.settings import Settings

    try:
        found = Settings.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        raise InvalidSettingError(f"WINDOWPANE_{name.upper()}", first["msg"].removeprefix("Value error, ")) from None
    configure_logging_later(found.log_level if "log_level" in found.model_fields_set else "warning")
    return found


def server_url() -> str | None:
    """Return the address of the server that runs the command; None when it runs on this machine."""
    return os.environ.get("WINDOWPANE_URL") or None
