"""What a caller demands of an answer, in pydantic-ai's words: a tool that must be called, or JSON of some form.

A demand is passed on to the provider, which sees to it. Where a model or its provider cannot be held to it the call is
refused: an answer that only looks as if it had been is worse than none.
"""

from collections.abc import Sequence

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings

from windowpane.context.items import ItemRef
from windowpane.context.request import AnswerForm, OfferedTool
from windowpane.errors import ModelRejectedError
from windowpane.models.messages import definitions

GOOGLE = "google"


def parameters(
    model: Model, name: str, tools: Sequence[OfferedTool], form: AnswerForm | None
) -> ModelRequestParameters:
    """Return the tools and the form of a call.

    Raises:
        ModelRejectedError: the model cannot be held to the form.
    """
    offered = definitions(tools)
    if form is None:
        return ModelRequestParameters(function_tools=offered)
    if form.schema is None:
        _check_json(model, name, tools)
        return ModelRequestParameters(function_tools=offered, output_mode="prompted", prompted_output_template=False)
    described = OutputObjectDefinition(
        json_schema=dict(form.schema),
        name=form.name or None,
        description=form.description or None,
        strict=form.strict,
    )
    return ModelRequestParameters(function_tools=offered, output_mode="native", output_object=described)


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
        raise ModelRejectedError(f"{name} cannot be made to call a tool; leave the choice to it")
    names = [tool.offered_name for tool in tools if tool.ref in must_call]
    if not names:
        wanted = ", ".join(map(str, must_call))
        raise ModelRejectedError(f"{name} was to call {wanted}, which had no room in the request; send less with it")
    chosen["tool_choice"] = names


def _check_json(model: Model, name: str, tools: Sequence[OfferedTool]) -> None:
    """Refuse what pydantic-ai would pass over in silence."""
    if not model.profile.get("supports_json_object_output", False):
        raise ModelRejectedError(f"{name} cannot be held to JSON of any form; give it a schema")
    if tools and model.system.startswith(GOOGLE):
        raise ModelRejectedError(f"{name} cannot be held to JSON of any form while it has tools; give it a schema")
