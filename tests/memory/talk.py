"""Conversations for tests: what was said, by turns, with sequence numbers that count up."""

from collections.abc import Sequence
from datetime import UTC, datetime

from windowpane.context.messages import AssistantMessage, ModelReply, Step, UserMessage
from windowpane.memory.recent import Due

AT = datetime(2026, 5, 1, tzinfo=UTC)


def user(seq: int, text: str) -> UserMessage:
    return UserMessage(content=text, seq=seq, at=AT)


def assistant(seq: int, text: str) -> AssistantMessage:
    return AssistantMessage(model_reply=ModelReply((Step(text=text),)), seq=seq, at=AT)


def talk(*texts: str, first_seq: int = 1) -> tuple[UserMessage | AssistantMessage, ...]:
    """Return messages of a user and an assistant in turn."""
    speakers = (user, assistant)
    return tuple(speakers[index % 2](first_seq + index, text) for index, text in enumerate(texts))


def chatter(count: int, first_seq: int = 1) -> tuple[UserMessage | AssistantMessage, ...]:
    return talk(*(f"message {first_seq + index}" for index in range(count)), first_seq=first_seq)


def due_of(*texts: str) -> Due:
    return Due(talk(*texts), None)


def seqs(messages: Sequence[UserMessage | AssistantMessage]) -> list[int]:
    return [message.seq for message in messages]
