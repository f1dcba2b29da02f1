"""Numbers and texts as JSON has them: 2.0 is a whole number, and neither "2" nor true is one."""

import json
import re
from typing import Annotated

from pydantic import BeforeValidator, Field

_LONG_NUMBER = re.compile(r"[0-9]{309}")
"""No shorter number is too large for those who read numbers as doubles."""


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_storable(value: object) -> None:
    """Refuse what other programs could not read back: half characters, and numbers that are none or too large.

    Raises:
        ValueError: there is such a thing in the value.
        RecursionError: it is nested too deeply.
    """
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    written.encode()
    if _LONG_NUMBER.search(written):
        json.dumps(json.loads(written, parse_int=float), allow_nan=False)


Whole = Annotated[int, BeforeValidator(_whole), Field(strict=True)]
