"""The rolling summary of a conversation: what lies before the messages that are sent whole.

`key_facts` and `preferences` are carried over word for word from summary to summary and are never rewritten; the rest
is prose that each new summary writes afresh.
"""

from dataclasses import dataclass
from typing import Literal

from windowpane.context.identity_cache import Remembering

ConversationState = Literal["active", "exploring", "troubleshooting", "resolved", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Remembering):
    """What was said up to and including the message at `through_seq`.

    `preferences` hold for the whole conversation and are given up last. `evicted` is what there was no room for, the
    latest last; what earlier summaries evicted stands in their own events.
    """

    overview: str
    current_topic: str = ""
    state: ConversationState = "unknown"
    key_facts: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    through_seq: int
    made_by: str = ""
