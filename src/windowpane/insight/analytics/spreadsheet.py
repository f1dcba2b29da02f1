"""Write the lists of a dashboard for spreadsheets, as CSV."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast, get_args

from windowpane.api.analytics import Dashboard, Listed
from windowpane.api.turns import How
from windowpane.context.items import ItemRef
from windowpane.insight.analytics.count import WAYS_IN


def as_csv(found: Dashboard, listed: Listed) -> str:
    """Return one of a dashboard's lists as CSV, a line for each entry, with a heading."""
    rows = [dict(_columns(row)) for row in cast("Sequence[object]", getattr(found, listed))]
    text = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), restval=0)
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def _columns(row: object) -> Iterator[tuple[str, object]]:
    """Return an entry's values by column. Values within values stand beside the others, sums by key as `name_key`."""
    for part in fields(cast("Any", row)):
        value: Any = getattr(row, part.name)
        if isinstance(value, ItemRef):
            yield "item", _harmless(str(value))
        elif isinstance(value, Mapping):
            counted = cast("Mapping[str, int]", value)
            yield from ((f"{part.name}_{key}", counted.get(key, 0)) for key in _KEYS[part.name])
        elif isinstance(value, tuple):
            continue
        elif is_dataclass(value):
            yield from _columns(value)
        else:
            yield part.name, _harmless(value) if isinstance(value, str) else value


_KEYS: Mapping[str, tuple[str, ...]] = {"by_mode": WAYS_IN, "by_use": get_args(How)}


def _harmless(text: str) -> str:
    """Return a name that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
