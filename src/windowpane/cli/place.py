"""The settings of a command: its options, then the environment, then the defaults."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from windowpane.errors import InvalidSettingError
from windowpane.server.process.logs import configure_logging
from windowpane.settings import Settings


def settings_from(given: Mapping[str, Path | str | int | None]) -> Settings:
    """Return the settings of this process: what was given, then the environment, then the defaults.

    Raises:
        InvalidSettingError: a value cannot be used.
    """
    try:
        return Settings.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        raise InvalidSettingError(f"WINDOWPANE_{name.upper()}", first["msg"]) from None


def log_to_stderr(settings: Settings) -> None:
    """Keep the log away from what a command prints. Only warnings and errors are logged unless a level was set.

    Raises:
        InvalidSettingError: there is no such level.
    """
    configure_logging(settings.log_level if "log_level" in settings.model_fields_set else "warning")
