"""A session with thousands of messages, as years of talking would make it."""

from __future__ import annotations

from typing import Any

from browser.place import Place

ANSWER = """Photo {number} is **stored** in the album. To find it again:

1. Open the album and choose *Search*.
2. Write `photo-{number}` and press Enter.
"""
CODE = """
```python
album.find("photo-{number}", width={number})
```
"""


def long_session(place: Place, messages: int, name: str = "Years of photos") -> str:
    """Import a session with this many messages, questions and answers by turns, and return its id."""
    first = place.new_session(name)
    document = place.call("GET", f"/api/sessions/{first}/export")
    created: dict[str, Any] = document["events"][0]
    document["events"] = [created, *(_said(number, created["at"]) for number in range(messages))]
    place.call("DELETE", f"/api/sessions/{first}")
    return place.call("POST", "/api/sessions/import", document)["id"]


def _said(number: int, at: str) -> dict[str, Any]:
    question = number % 2 == 0
    content = f"Where is photo {number}?" if question else (ANSWER + CODE * (number % 5 == 0)).format(number=number - 1)
    role = "user" if question else "assistant"
    event = {"type": "message.added", "role": role, "content": content, "tokens": 20, "source": ""}
    return {"seq": number + 2, "at": at, "event": event}
