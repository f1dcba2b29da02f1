"""Shorthand for the tests of models: messages, tools, the end of a stream, and models that speak to a wire server."""

from collections.abc import AsyncGenerator, Sequence

from windowpane.context.items import tool_ref
from windowpane.context.messages import Step, ToolCall
from windowpane.context.request import CallSettings, OfferedTool, RequestMessage, Role
from windowpane.models.base import ChatModel, ModelStep, ModelText
from windowpane.models.provider import PydanticModels
from windowpane.models.stream import Patience

KEY = "sk-test-key-1234567890"
QUICK = Patience(connect_s=10, first_s=60, between_s=60, first_wait_s=0, longest_wait_s=30)

READ = OfferedTool(
    "files_read",
    tool_ref("files", "read"),
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def message(role: Role, content: str, *calls: ToolCall, call_id: str | None = None) -> RequestMessage:
    """Return a message; which part of the prompt it belongs to does not matter to a model."""
    return RequestMessage(role=role, content=content, part="history", tool_calls=calls, tool_call_id=call_id)


HI = (message("user", "Hi"),)


def settings(model: ChatModel) -> CallSettings:
    """Return settings that leave everything to the provider."""
    return CallSettings(model=model.name)


def speaking(model: ChatModel) -> AsyncGenerator[ModelText | ModelStep]:
    """Return a call that can be left early."""
    return model.stream(HI, (), settings(model))


async def listen(
    model: ChatModel,
    messages: Sequence[RequestMessage] = HI,
    tools: Sequence[OfferedTool] = (),
    chosen: CallSettings | None = None,
) -> tuple[list[ModelText], Step]:
    """Return everything that a call gives."""
    texts: list[ModelText] = []
    steps: list[Step] = []
    async for event in model.stream(messages, tools, chosen or settings(model)):
        assert not steps, "nothing comes after the end"
        match event:
            case ModelText():
                texts.append(event)
            case ModelStep(step=step):
                steps.append(step)
    assert len(steps) == 1
    return texts, steps[0]


def openai_models(url: str, patience: Patience = QUICK) -> PydanticModels:
    """Return models for a server that speaks OpenAI's protocols."""
    return PydanticModels(patience=patience, environ={"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY})


def anthropic_models(url: str, patience: Patience = QUICK) -> PydanticModels:
    """Return models for a server that speaks Anthropic's protocol."""
    return PydanticModels(patience=patience, environ={"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY})


def google_models(url: str, patience: Patience = QUICK) -> PydanticModels:
    """Return models for a server that speaks Google's protocol."""
    return PydanticModels(patience=patience, environ={"GOOGLE_GEMINI_BASE_URL": url, "GOOGLE_API_KEY": KEY})
