"""Keys of providers that were given to the server: one file for each, which only the server's user can read.

A key is in no answer, log or export. A file is read again for each model that is opened, so a key that was given or
removed counts from the next call on, in every worker.
"""

import os
import re
import tempfile
from pathlib import Path

from windowpane.errors import InvalidInputError

_KEY = re.compile(r"[!-~]{1,1000}")


class KeptKeys:
    """The keys in a folder, by the environment variable that would hold them. Without a folder there are none."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def get(self, variable: str) -> str:
        """Return a key, or nothing when none was given."""
        if self._folder is None:
            return ""
        try:
            return (self._folder / variable).read_text("ascii").strip()
        except (OSError, ValueError):
            return ""

    def keep(self, variable: str, key: str) -> None:
        """Keep a key in place of the one before.

        Raises:
            InvalidInputError: it is no key, or it cannot be kept.
        """
        if not _KEY.fullmatch(key.strip()):
            raise InvalidInputError("a key has 1 to 1000 letters, digits and signs, without spaces")
        folder = self._checked()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A temporary file can be read by its user only, and stays so under its new name.
            with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".", delete=False) as file:
                file.write(key.strip() + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(file.name).replace(folder / variable)
        except OSError as error:
            raise InvalidInputError(f"the key cannot be kept in {folder}: {error.strerror}") from None

    def remove(self, variable: str) -> None:
        """Forget a key. One that is not there is forgotten already.

        Raises:
            InvalidInputError: it cannot be removed.
        """
        folder = self._checked()
        try:
            (folder / variable).unlink(missing_ok=True)
        except OSError as error:
            raise InvalidInputError(f"the key in {folder} cannot be removed: {error.strerror}") from None

    def _checked(self) -> Path:
        if self._folder is None:
            raise InvalidInputError("keys cannot be kept here; set them in the environment")
        return self._folder
