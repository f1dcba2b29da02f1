"""Days gone by: real sessions, imported again with other times."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from browser.place import Place

TIME = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z)"')


def happened_before(place: Place, session: str, days: int, name: str = "") -> str:
    """Store a copy of a session as it would be if all of it had happened so much earlier; return its id."""
    earlier = timedelta(days=days)

    def moved(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[1]) - earlier
        return f'"{at.astimezone(UTC).isoformat().replace("+00:00", "Z")}"'

    document = place.call("GET", f"/api/sessions/{session}/export")
    document["events"] = json.loads(TIME.sub(moved, json.dumps(document["events"])))
    query = f"?{urlencode({'name': name})}" if name else ""
    return place.call("POST", f"/api/sessions/import{query}", document)["id"]
