"""Decide whether a tool call runs, waits for a person, or is refused.

Two settings meet: what the agent says about the tool, and how careful the session wants to be. The session may ask
more often or less often than the tool does; only a forbidden tool is beyond its reach.
"""

from typing import Literal

from windowpane.context.items import Permission
from windowpane.context.session import ToolPermission

Verdict = Literal["run", "ask", "refuse"]


def decide(permission: Permission, session: ToolPermission, *, allowed_for_session: bool) -> Verdict:
    """Return what happens to a call. `allowed_for_session` tells that a person allowed this tool for good here."""
    if permission == "forbidden":
        return "refuse"
    asks = session == "always" or (session == "tool" and permission == "required")
    return "ask" if asks and not allowed_for_session else "run"
