"""How a client wants tokens to be sampled, in pydantic-ai's words.

What a provider takes is passed on to it. What it does not take is left out and named, so that the client can be told:
an unknown parameter is passed on only to servers that speak OpenAI's protocol under an address of their own, because
each knows others.
"""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from windowpane.context.request import ReplyOptions

OPENAI_HOST = "api.openai.com"
SHARED = ("seed", "frequency_penalty", "presence_penalty", "logit_bias", "parallel_tool_calls", "top_k")
"""Parameters that have the same name in pydantic-ai. A model class says which of them it does not take."""

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")


def sampling_settings(model: Model, options: ReplyOptions) -> tuple[ModelSettings, tuple[str, ...]]:
    """Return the settings that the model takes, and the names of those that it does not."""
    taken: dict[str, Any] = {}
    ignored: list[str] = []
    own: dict[str, Any] = {}
    for name, value in options.sampling.items():
        if name in SHARED and name not in model.unsupported_settings and model.provider is not None:
            taken[name] = value
        elif name == "reasoning_effort" and _takes_effort(model, value):
            taken["openai_reasoning_effort" if _speaks_openai(model) else "thinking"] = value
        elif _has_own_parameters(model):
            own[name] = value
        else:
            ignored.append(name)
    if own:
        taken["extra_body"] = own
    if options.stop and "stop_sequences" not in model.unsupported_settings and model.provider is not None:
        taken["stop_sequences"] = list(options.stop)
    return cast("ModelSettings", taken), tuple(ignored)


def _takes_effort(model: Model, value: object) -> bool:
    if _speaks_openai(model):
        return isinstance(value, str)
    profile: Mapping[str, Any] = model.profile
    return value in EFFORTS and model.provider is not None and bool(profile.get("supports_thinking"))


def _speaks_openai(model: Model) -> bool:
    # By name: importing the classes would load OpenAI's client for every provider.
    return any(kind.__name__ in ("OpenAIChatModel", "OpenAIResponsesModel") for kind in type(model).__mro__)


def _has_own_parameters(model: Model) -> bool:
    chat = any(kind.__name__ == "OpenAIChatModel" for kind in type(model).__mro__)
    return chat and urlsplit(str(model.base_url or "")).hostname not in (None, OPENAI_HOST)
