"""Calls: every HTTP request to a provider, as it was sent.

A call is recorded by two events of the log, `call.sent` and `call.ended`. A request is what was built; a call is what
was sent, with retries, calls for a summary and calls whose answer broke off. Calls of other makers' programs are
recorded too; `Origin` names the program.
"""

from dataclasses import dataclass, replace
from typing import Literal

from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.messages import ToolCall, Usage

CallPurpose = Literal["answer", "summary", "embedding", "sampling", "count", "helper"]
"""What a call was made for; `sampling` is for a tool that asked the model. Recorded programs also count tokens, and ask
for small things beside the conversation."""

CallOutcome = Literal["complete", "cut", "error"]
"""How a call ended: with a whole answer, with one that broke off, or with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireHead:
    """The head of an HTTP request: where it went and with which headers. Values of keys are taken out."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """What a million tokens of a model cost in US dollars, as its agent says.

    Tokens that are read from the provider's cache or written to it cost what other input costs, unless they have a
    price of their own. Those that are written for an hour cost what other written ones cost, unless they have theirs.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSent:
    """An HTTP request went to a provider.

    `id` ties it to its end. `turn` is None for a call that belongs to no turn, `step` counts a turn's model calls
    from 1, `attempt` the tries of one step. `head` names the blob with method, address and headers, keys taken out;
    `body` names the blob from which the bytes are put together again, whose SHA-256 and size follow. `encoding` is how
    the body was compressed on the wire; what is kept, measured and hashed is what it said. `seen` is False for a call
    that was read from a log or a trace: the body is put together from what that tells.
    """

    id: str
    turn: int | None = None
    step: int
    attempt: int
    purpose: CallPurpose
    model: str
    head: BlobHash
    body: BlobHash
    sha256: str
    size: int
    encoding: str = ""
    seen: bool = True
    type: Literal["call.sent"] = "call.sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """An HTTP request to a provider ended.

    `address` is where it went, and `price` what the agent says that the model costs, if it says so: with `usage` they
    tell the cost. `counted_tokens` is our own count of what was sent, `tools_tokens` of them for tools, also where the
    model is not shown any. `status` is None when no answer began; `usage` is None when the provider reported none.
    `output_unknown` tells that a whole answer came with a report of its input alone; an answer that broke off counts
    as far as it was reported.
    `reason` says what went wrong, in a few words, without keys. `answer` names the blob with what was answered
    (`FoldedReply`); None where the events of the turn say that.
    """

    id: str
    turn: int | None = None
    purpose: CallPurpose = "answer"
    model: str = ""
    address: str = ""
    price: ModelPrice | None = None
    counted_tokens: int = 0
    tools_tokens: int = 0
    outcome: CallOutcome
    status: int | None = None
    first_byte_ms: int | None = None
    duration_ms: int = 0
    usage: Usage | None = None
    output_unknown: bool = False
    reason: str = ""
    answer: BlobHash | None = None
    type: Literal["call.ended"] = "call.ended"

    @property
    def known_usage(self) -> Usage | None:
        """Return what the call used, or None when that is not known in full."""
        return known_usage(self.usage, output_unknown=self.output_unknown)


def known_usage(usage: Usage | None, *, output_unknown: bool) -> Usage | None:
    """Return a usage that tells input and output. No call is without input: zero is a count that was not reported."""
    return usage if usage is not None and usage.input_tokens and not output_unknown else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedReply:
    """What a provider answered to one call, folded from its bytes.

    `id` is the provider's name for the answer, and `finish_reason` is in its words. `error` is what an answer without
    success says.
    """

    id: str = ""
    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    model: str = ""
    error: str = ""


OriginKind = Literal["xray", "import", "server"]
"""Where its calls are from: they passed through the recording proxy, were read from a log or a trace, or were made by
this server for no session."""

ImportSource = Literal["claude-code", "codex", "otel", "langfuse", "litellm"]
"""What calls can be read from: logs of two agents, spans of OpenTelemetry, and what two other tools export."""

NotTold = Literal["wire", "system", "tools", "messages", "usage", "failures"]
"""What a source does not tell: the bytes and headers that were sent, the system prompt, the definitions of tools, what
was said, the tokens that were reported, and calls that failed."""

AGENT_PREFIX, SERVER_PREFIX = "xray:", "server:"
"""Sessions without an agent are listed under these and the name of their program. No agent's folder has such a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The program that a recorded session belongs to.

    `conversation` is the program's own id for it, empty where the program gave none. `parent` is the session whose
    agent began this one, such as that of a subagent. Of an imported session `source` says what it was read from, and
    `not_told` what that source did not tell when the session began.
    """

    kind: OriginKind = "xray"
    program: str
    version: str = ""
    conversation: str = ""
    parent: SessionId | None = None
    source: ImportSource | None = None
    not_told: tuple[NotTold, ...] = ()

    @property
    def agent(self) -> str:
        """Return what stands in the place of an agent's name."""
        return f"{SERVER_PREFIX if self.kind == 'server' else AGENT_PREFIX}{self.program}"


TOKEN_FACTOR_CALLS = 4
"""Over about how many calls a token factor is taken."""

LOWEST_FACTOR, HIGHEST_FACTOR = 0.5, 4.0
"""A token factor outside these says more about the report than about the model."""

SURE_CALLS = 3
"""So many calls tell that a low count is no accident."""

STEADY = 2.0
"""How much the factor of one model may differ from call to call."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many tokens of a model one token of our own count was: over the last calls, and at the least and the most."""

    mean: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, reported: float, counted: int) -> "Ratio":
        """Return the ratio of one call."""
        return cls(*(reported / counted,) * 3)

    def after(self, last: "Ratio", weight: float) -> "Ratio":
        """Return the ratio after one more call, which has this weight."""
        mean = self.mean + (last.mean - self.mean) * weight
        return Ratio(mean, min(self.lowest, last.lowest), max(self.highest, last.highest))


@dataclass(frozen=True, slots=True)
class TokenFactor:
    """How the tokens of a model compare with our own count, as far as the calls of the session have shown.

    `with_tools` compares what it reported with all that was sent, `without_tools` with the messages alone.
    `messages_tokens` is our count of the messages in the last call. `most_of_new` is what a call reported, at the most,
    for one token that the messages grew by.
    """

    model: str
    with_tools: Ratio
    without_tools: Ratio
    calls: int = 1
    address: str = ""
    messages_tokens: int = 0
    most_of_new: float = 0.0

    @property
    def tools_shown(self) -> bool:
        """Tell whether the model is shown its tools. Some chat templates leave them out.

        It is not, when no factor makes tools and messages as few tokens as it reported, and one and about the same
        makes the messages so many in every call. Some servers report what they had not read before: no factor may
        make what was new in a call as many as it reported.
        """
        messages = self.without_tools
        steady = LOWEST_FACTOR <= messages.lowest <= messages.highest <= min(HIGHEST_FACTOR, STEADY * messages.lowest)
        whole = self.calls >= SURE_CALLS and self.most_of_new > HIGHEST_FACTOR
        return not (steady and whole and self.with_tools.lowest < LOWEST_FACTOR)

    @property
    def factor(self) -> float:
        """Return how many tokens of the model one of our count is. Tools that are not shown count for nothing."""
        return (self.with_tools if self.tools_shown else self.without_tools).mean

    def after(self, last: "TokenFactor") -> "TokenFactor":
        """Return what is known after one more call. Later calls count more: the next one will be like them.

        What another model or server reported is forgotten.
        """
        if self.model != last.model or self.address not in ("", last.address):
            return last
        weight = 1 / min(self.calls + 1, TOKEN_FACTOR_CALLS)
        with_tools = self.with_tools.after(last.with_tools, weight)
        without_tools = self.without_tools.after(last.without_tools, weight)
        grown = last.messages_tokens - self.messages_tokens
        of_new = last.without_tools.mean * last.messages_tokens / grown if grown > 0 and self.messages_tokens else 0.0
        return replace(
            last,
            with_tools=with_tools,
            without_tools=without_tools,
            calls=self.calls + 1,
            most_of_new=max(self.most_of_new, of_new),
        )


def reported_factor(call: CallEnded) -> TokenFactor | None:
    """Return what one call shows; None where the provider reported nothing, or nothing was counted."""
    usage, counted = call.usage or Usage(), call.counted_tokens
    reported, messages_tokens = usage.input_tokens, counted - call.tools_tokens
    if not reported or messages_tokens <= 0:
        return None
    # A server may count apart what it read from its cache.
    at_most = (reported + usage.cache_read_tokens) / counted
    with_tools = replace(Ratio.of(reported, counted), lowest=at_most, highest=at_most)
    without_tools = Ratio.of(reported, messages_tokens)
    return TokenFactor(call.model, with_tools, without_tools, address=call.address, messages_tokens=messages_tokens)


@dataclass(frozen=True, slots=True)
class SmallerWindow:
    """The window that a model turned out to have, when it refused a request that its listed window would take.

    `factor` is how many of its tokens one of ours was in that request. `exact` tells whether the model named its
    window and its count; otherwise `tokens` is a guess that holds with this factor alone.
    """

    model: str
    tokens: int
    factor: float
    exact: bool


def after_refusal(known: TokenFactor | None, refused: SmallerWindow) -> TokenFactor:
    """Return what is known of a model after a refusal that showed its factor."""
    shown = Ratio.of(refused.factor, 1)
    if known is None or known.model != refused.model:
        return TokenFactor(refused.model, shown, shown)
    with_tools, without_tools = (
        replace(known.with_tools, mean=shown.mean),
        replace(known.without_tools, mean=shown.mean),
    )
    return replace(known, with_tools=with_tools, without_tools=without_tools)
