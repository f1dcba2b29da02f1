"""Decide which messages are sent whole, and when the ones before them are to be summed up.

Both follow from the log alone. The recent messages are everything that the summary does not cover. So the summary and
the recent messages never overlap, and nothing lies between them. When a summary is made follows from a size: once the
recent messages take more tokens than it is worth to send again and again. A fixed window counts messages instead: the
last `RECENT`, and up to `UNCOVERED` older ones until the next summary takes them in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from windowpane.context.identity_cache import cached_in
from windowpane.context.messages import AssistantMessage, Message, UserMessage
from windowpane.context.summary import Summary
from windowpane.text.render import render_message, render_sources
from windowpane.text.tokens import count, message_tokens

RECENT = 8
LEAST_RECENT = 5
UNCOVERED = 5
FEW = 3
LONG_CHARACTERS = 8000

KEPT_SHARE = 1 / 3
"""How much of its size a window keeps whole when the rest is summed up."""

MOST_MESSAGES = 96
"""So many messages are sent whole at most: a session's state keeps few more of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWindow:
    """How much of a conversation is sent whole: so many `tokens`, or, where it is set, so many `messages`."""

    tokens: int = 0
    messages: int | None = None


FIXED = MemoryWindow(messages=RECENT)
"""The window of the design documents."""

BOUNDARY_TOKENS = 25
"""About what the boundary lines around a block take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingTokens:
    """What stands among the messages beside them: the texts that were selected, by turn, and the tools.

    A text leaves with the message that it was for.
    """

    texts: Mapping[int, int] = field(default_factory=dict[int, int])
    tools: int = 0


NOTHING_STANDS = StandingTokens()


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
    return tuple([message for message in messages if isinstance(message, (UserMessage, AssistantMessage))])


def recent_messages(latest: Sequence[Message], summary: Summary | None) -> tuple[UserMessage | AssistantMessage, ...]:
    """Return the messages that are sent whole."""
    covered = summary.through_seq if summary else 0
    return conversation([message for message in latest if message.seq > covered])


@cached_in("_sent")
def sent_tokens(message: UserMessage | AssistantMessage) -> int:
    """Return what a message takes that is sent whole, with the lines that name its documents."""
    said = sum(map(message_tokens, render_message(message, with_tools=True)))
    sources = render_sources(message)
    return said + (count(sources) + BOUNDARY_TOKENS if sources else 0)


def due(
    latest: Sequence[Message],
    summary: Summary | None,
    window: MemoryWindow = FIXED,
    standing: StandingTokens = NOTHING_STANDS,
) -> Due | None:
    """Return what is to be summed up now, or None. `standing` is what stands among the messages beside them."""
    uncovered = recent_messages(latest, summary)
    if window.messages is not None:
        return _due_by_number(uncovered, summary, window.messages)
    tokens = [
        sent_tokens(message) + (standing.texts.get(message.turn or 0, 0) if isinstance(message, UserMessage) else 0)
        for message in uncovered
    ]
    # Tools alone are no reason: a re-base takes most of them along.
    size = sum(tokens) + min(standing.tools, window.tokens // 2)
    if size <= window.tokens and len(uncovered) <= MOST_MESSAGES:
        return None
    kept, room = 0, int(window.tokens * KEPT_SHARE)
    for cost in reversed(tokens):
        room -= cost
        if room < 0 or kept >= MOST_MESSAGES // 2:
            break
        kept += 1
    outside = uncovered[: -max(kept, LEAST_RECENT)]
    # A few messages are not worth a summary, however long they are.
    return Due(outside, summary) if outside and (summary is None or len(outside) > FEW) else None


def _due_by_number(
    uncovered: tuple[UserMessage | AssistantMessage, ...], summary: Summary | None, recent: int
) -> Due | None:
    """Return what is to be summed up now, by the number of messages.

    It is time once more than `UNCOVERED` messages lie before the last `recent` ones without being covered. A
    conversation longer than `LONG_CHARACTERS` does not wait for that: all but its last `LEAST_RECENT` messages are
    summed up, and then a few at a time, so that long messages do not ask for a summary after every turn.
    """
    outside = uncovered[:-recent]
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
