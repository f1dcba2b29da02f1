"""What a model says in one answer, before a protocol puts it on the wire."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WireCall:
    """A tool call, its arguments in the pieces in which they are streamed."""

    id: str
    name: str
    arguments: tuple[str, ...] = ("{}",)


@dataclass(frozen=True, slots=True)
class WireReply:
    """One answer, its text in the pieces in which it is streamed. `finish` None: what the content implies.

    Claude Code takes answers with one `id` for one message, and sends them so.
    """

    text: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    calls: tuple[WireCall, ...] = ()
    input_tokens: int = 11
    output_tokens: int = 7
    cached_tokens: int = 0
    written_tokens: int = 0
    written_1h_tokens: int = 0
    finish: str | None = None
    id: str = "msg_1"
