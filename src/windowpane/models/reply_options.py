"""Reply options in pydantic-ai's words: a tool that must be called, or a JSON response format.

They are passed on to the provider, which enforces them. Where a model or its provider cannot, the call is refused: an
answer that only looks as if it followed them is worse than none.
"""

from collections.abc import Collection, Sequence

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings, ToolOrOutput

from windowpane.context.items import ItemRef
from windowpane.context.request import OfferedTool, ResponseFormat
from windowpane.errors import ModelRejectedError
from windowpane.models.messages import definitions

GOOGLE = "google"


def parameters(
    model: Model,
    name: str,
    tools: Sequence[OfferedTool],
    response_format: ResponseFormat | None,
    added: Collection[str] = (),
) -> ModelRequestParameters:
    """Return the tools and the response format of a call. `added` are the tools that messages add.

    Raises:
        ModelRejectedError: the model does not support the response format.
    """
    offered, shown = definitions(tools, added), set(added)
    if response_format is None:
        return ModelRequestParameters(function_tools=offered, revealed_tool_names=shown)
    if response_format.schema is None:
        _check_json(model, name, tools)
        return ModelRequestParameters(
            function_tools=offered,
            revealed_tool_names=shown,
            output_mode="prompted",
            prompted_output_template=False,
        )
    described = OutputObjectDefinition(
        json_schema=dict(response_format.schema),
        name=response_format.name or None,
        description=response_format.description or None,
        strict=response_format.strict,
    )
    return ModelRequestParameters(
        function_tools=offered, revealed_tool_names=shown, output_mode="native", output_object=described
    )


def force(
    chosen: ModelSettings, model: Model, name: str, tools: Sequence[OfferedTool], must_call: Sequence[ItemRef]
) -> None:
    """Let the model call one of the tools that must be called, and nothing else.

    Raises:
        ModelRejectedError: none of them is in the request, or the model cannot be made to call one.
    """
    if not must_call:
        return
    if not model.profile.get("supports_forced_tool_choice", True):
        raise ModelRejectedError(f"{name} does not support a forced tool choice; let the model choose")
    names = [tool.offered_name for tool in tools if tool.ref in must_call]
    if not names:
        wanted = ", ".join(map(str, must_call))
        raise ModelRejectedError(f"{name} must call {wanted}, which did not fit in the request; send less with it")
    chosen["tool_choice"] = names


def allow(chosen: ModelSettings, model: Model, allowed: Sequence[str] | None) -> None:
    """Let the model call no other tools than these, where its provider can be told so and keeps what it read."""
    known = model.profile.get("openai_chat_supports_allowed_tools", False)
    if known and allowed is not None and "tool_choice" not in chosen:
        chosen["tool_choice"] = ToolOrOutput(function_tools=list(allowed)) if allowed else "none"


def _check_json(model: Model, name: str, tools: Sequence[OfferedTool]) -> None:
    """Refuse what pydantic-ai would pass over in silence."""
    if not model.profile.get("supports_json_object_output", False):
        raise ModelRejectedError(f"{name} does not support JSON without a schema; give it a schema")
    if tools and model.system.startswith(GOOGLE):
        raise ModelRejectedError(f"{name} does not support JSON without a schema while it has tools; give it a schema")
