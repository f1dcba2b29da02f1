"""The rolling summary of a conversation: what lies before the messages that are sent whole.

`facts` are carried over word for word from summary to summary and are never rewritten; the rest is prose that each new
summary writes afresh.
"""

from dataclasses import dataclass
from typing import Literal

ConversationState = Literal["active", "exploring", "troubleshooting", "resolved", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What was said up to and including the message at `through_seq`."""

    overview: str
    current_topic: str = ""
    state: ConversationState = "unknown"
    key_facts: tuple[str, ...] = ()
    through_seq: int
    made_by: str = ""
