"""What a model can take in, how much and which files, by its name alone: no provider is opened, no key is needed.

The sizes come from the price list of genai-prices, which is read offline. Of files there is no list anywhere, so names
decide: the large providers' models take images and PDF but for a few old ones, and of open models those whose names say
that they see. What is not known takes nothing and gets a note; an agent that knows better says so (`inputs` in
`agent.yaml`).
"""

import re

from windowpane.context.messages import ECHO, FileKind
from windowpane.models.base import ECHO_WINDOW_TOKENS, LOCAL, LOCAL_WINDOW_TOKENS

_LISTED_AS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure-responses": "azure",
    "google-cloud": "google",
    "bedrock": "aws",
    "xai": "x-ai",
}


def window_tokens(name: str) -> int | None:
    """Return the size of the window of `provider:model` in tokens, or None when it is not listed."""
    if name == ECHO:
        return ECHO_WINDOW_TOKENS
    if name == LOCAL:
        return LOCAL_WINDOW_TOKENS
    # Not at the top: the list takes half a second to load, and the built-in model does not need it.
    from genai_prices.data_snapshot import get_snapshot

    provider, _, model = name.partition(":")
    try:
        _, listed = get_snapshot().find_provider_model(model, None, _LISTED_AS.get(provider, provider), None)
    except LookupError:
        return None
    return listed.context_window


NOTHING: tuple[FileKind, ...] = ()
IMAGES: tuple[FileKind, ...] = ("image",)
IMAGES_AND_PDF: tuple[FileKind, ...] = ("image", "pdf")

_BLIND_OPENAI = re.compile(
    r"(ft:)?(gpt-3|gpt-4(-0|-32k|$)|gpt-4-1106|o1-mini|o1-preview|o3-mini|davinci|babbage|codex-mini|gpt-oss)"
)
_OLD_CLAUDE = re.compile(r"claude-(instant|2|v2)")
_CLAUDE_WITHOUT_PDF = re.compile(r"claude-3-(haiku|opus|sonnet)")
_SEEING = re.compile(
    r"(^|[^a-z])(vl|vision|llava|bakllava|pixtral|moondream|minicpm-v|internvl|gemma-?3|llama-?4|gpt-4o|gpt-4\.1|gpt-5"
    r"|o3(?!-mini)|o4|claude|gemini|grok-4|mistral-(small|medium)(3|-3|-25|-latest)|kimi-k2\.5)|[0-9]vl|-vl"
)


def known_inputs(name: str, *, own_server: bool = False) -> tuple[FileKind, ...]:
    """Return the files that `provider:model` takes. `own_server`: calls go to another server than the provider's."""
    if name == ECHO:
        return IMAGES
    provider, _, model = name.partition(":")
    model = model.lower()
    if not own_server:
        match provider:
            case "openai" | "openai-chat" | "openai-responses":
                return NOTHING if _BLIND_OPENAI.match(model) else IMAGES_AND_PDF
            case "anthropic":
                return _of_claude(model)
            case "google" | "google-cloud":
                return NOTHING if model.startswith("gemma-2") else IMAGES_AND_PDF
            case "bedrock" if "claude" in model:
                return _of_claude(model.partition("anthropic.")[2])
            case "azure" | "azure-responses":
                return NOTHING if _BLIND_OPENAI.match(model) else IMAGES
            case _:
                pass
    return IMAGES if _SEEING.search(model) and not _BLIND_OPENAI.match(model) else NOTHING


def _of_claude(model: str) -> tuple[FileKind, ...]:
    if _OLD_CLAUDE.match(model):
        return NOTHING
    return IMAGES if _CLAUDE_WITHOUT_PDF.match(model) else IMAGES_AND_PDF
