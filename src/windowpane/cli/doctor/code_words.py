"""Ask a model for the code words of a request: a part whose word does not come back may not have reached it.

Chat templates of open models drop parts without a word: a system message, tools, a block before the message. The
provider's own count of tokens is compared with ours for the same reason.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from windowpane.context.items import Tool
from windowpane.context.messages import Step
from windowpane.context.request import CallSettings, OfferedTool, RequestMessage
from windowpane.errors import ModelRejectedError
from windowpane.models.base import ChatModel, ModelStep
from windowpane.text.render import enclosed, render_references, render_rules
from windowpane.text.tokens import counted_tokens, family_for

PARTS: tuple[str, ...] = ("rule", "reference", "tool", "carried text", "message")
"""What a request is made of, in the order of a prompt."""

WORDS: tuple[str, ...] = (
    "basalt", "cobalt", "falcon", "ginger", "heron", "juniper", "lantern", "magnolia", "osprey", "pelican", "quartz",
    "saffron", "tamarind", "walnut",
)  # fmt: skip

FAR_SHARE, FAR_TOKENS = 0.5, 100
"""The reported tokens are far from the counted ones when they differ by so much of them, and by so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What came back. `lost` are the parts whose words did not; `counted_tokens` is our count of what was asked.

    `refused` is why the model took no tools. With `tools_unseen` its server leaves them out of the prompt: it counts as
    many tokens with a tool as without.
    """

    step: Step
    lost: tuple[str, ...]
    counted_tokens: int
    refused: str = ""
    tools_unseen: bool = False

    @property
    def far(self) -> bool:
        """Tell whether the provider counts far more or far fewer tokens than we do. One that tells none is not far."""
        reported = self.step.usage.input_tokens
        off = abs(reported - self.counted_tokens)
        return bool(reported) and off > FAR_TOKENS and off > FAR_SHARE * self.counted_tokens


async def ask_for_code_words(model: ChatModel, settings: CallSettings) -> Heard | None:
    """Return what a model says when it is asked for the code word of each part; None: its answer was incomplete.

    Raises:
        ModelError: the model could not be asked.
    """
    words: Mapping[str, str] = dict(zip(PARTS, random.sample(WORDS, len(PARTS)), strict=True))
    messages, tools = _messages(words), (_tool(words["tool"]),)
    try:
        step, refused = await _asked(model, messages, tools, settings), ""
    except ModelRejectedError as error:
        # Some servers refuse tools for models that have no template for them. Without them the others can be asked for.
        tools, refused = (), str(error)
        step = await _asked(model, messages, (), settings)
    if step is None:
        return None
    said = f"{step.text} {step.thinking}".lower()
    lost = tuple(part for part, word in words.items() if word not in said)
    return Heard(
        step=step,
        lost=lost,
        counted_tokens=counted_tokens(messages, tools, family_for(settings)),
        refused=refused,
        tools_unseen="tool" in lost and not refused and await _same_without_tools(model, messages, settings, step),
    )


async def _same_without_tools(
    model: ChatModel, messages: Sequence[RequestMessage], settings: CallSettings, with_tools: Step
) -> bool:
    """Tell whether the provider counts the same tokens of input without tools. One that tells none does not."""
    reported = with_tools.usage.input_tokens
    without = await _asked(model, messages, (), settings) if reported else None
    return without is not None and without.usage.input_tokens == reported


async def _asked(
    model: ChatModel, messages: Sequence[RequestMessage], tools: Sequence[OfferedTool], settings: CallSettings
) -> Step | None:
    found: Step | None = None
    async with aclosing(model.stream(messages, tools, settings)) as events:
        async for event in events:
            if isinstance(event, ModelStep):
                found = event.step
    return found


def _messages(words: Mapping[str, str]) -> tuple[RequestMessage, ...]:
    """Return a conversation as a request has it, with a code word in each part."""
    rules = render_rules([f"## code\n\nThe code word of the rules is {words['rule']}."])
    references = render_references([f"## codes\n\nThe code word of the references is {words['reference']}."])
    carried = render_references([f"## note\n\nThe code word of this note is {words['carried text']}."])
    question = (
        f"The code word of this message is {words['message']}. Which code words were you given in all: in the rules, "
        "in references and notes, in descriptions of your tools, in this message? Write all of them, and call no tool."
    )
    return (
        RequestMessage(role="system", content=rules, part="rules"),
        RequestMessage(role="system", content=references, part="references"),
        RequestMessage(role="user", content=enclosed("doctor", carried), part="selected"),
        RequestMessage(role="user", content="Here is a note.", part="history"),
        RequestMessage(role="assistant", content="Thank you.", part="history"),
        RequestMessage(role="user", content=question, part="message"),
    )


def _tool(word: str) -> OfferedTool:
    tool = Tool(name="code_word", server="doctor", description=f"The code word of the tools is {word}.")
    return OfferedTool("doctor__code_word", tool.ref, tool.description, {"type": "object", "properties": {}})
