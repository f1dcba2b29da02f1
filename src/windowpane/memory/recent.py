"""Decide which messages are sent whole, and when the ones before them are to be summed up.

Both follow from the log alone. The recent messages are everything that the summary does not cover: the last `RECENT`
messages, and up to `UNCOVERED` older ones until the next summary takes them in. So the summary and the recent messages
never overlap, and nothing lies between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.context.messages import AssistantMessage, Message, UserMessage
from windowpane.context.summary import Summary

RECENT = 8
LEAST_RECENT = 5
UNCOVERED = 5
FEW = 3
LONG_CHARACTERS = 8000


@dataclass(frozen=True, slots=True)
class Due:
    """Messages that the next summary takes in, oldest first, with the summary that they follow."""

    messages: tuple[UserMessage | AssistantMessage, ...]
    before: Summary | None

    @property
    def through_seq(self) -> int:
        """Return where the new summary ends."""
        return self.messages[-1].seq


def conversation(messages: Sequence[Message]) -> tuple[UserMessage | AssistantMessage, ...]:
    """Return what the user and the model said. Notes, errors and approvals are for people."""
    return tuple(message for message in messages if isinstance(message, UserMessage | AssistantMessage))


def recent_messages(latest: Sequence[Message], summary: Summary | None) -> tuple[UserMessage | AssistantMessage, ...]:
    """Return the messages that are sent whole."""
    covered = summary.through_seq if summary else 0
    return tuple(message for message in conversation(latest) if message.seq > covered)


def due(latest: Sequence[Message], summary: Summary | None) -> Due | None:
    """Return what is to be summed up now, or None.

    It is time once more than `UNCOVERED` messages lie before the last `RECENT` ones without being covered. A
    conversation longer than `LONG_CHARACTERS` does not wait for that: all but its last `LEAST_RECENT` messages are
    summed up, and then a few at a time, so that long messages do not ask for a summary after every turn.
    """
    uncovered = recent_messages(latest, summary)
    outside = uncovered[:-RECENT]
    if len(outside) > UNCOVERED:
        return Due(outside, summary)
    long = sum(len(text_of(message)) for message in uncovered) > LONG_CHARACTERS
    outside = uncovered[:-LEAST_RECENT]
    if long and outside and (summary is None or len(outside) > FEW):
        return Due(outside, summary)
    return None


def text_of(message: UserMessage | AssistantMessage) -> str:
    """Return what was said."""
    return message.content if isinstance(message, UserMessage) else message.model_reply.text
