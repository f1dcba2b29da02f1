"""How much a model can take in, by its name alone: no provider is opened and no key is needed.

The sizes come from the price list of genai-prices, which is read offline.
"""

from windowpane.models.base import ECHO, ECHO_WINDOW_TOKENS

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
    # Not at the top: the list takes half a second to load, and the built-in model does not need it.
    from genai_prices.data_snapshot import get_snapshot

    provider, _, model = name.partition(":")
    try:
        _, listed = get_snapshot().find_provider_model(model, None, _LISTED_AS.get(provider, provider), None)
    except LookupError:
        return None
    return listed.context_window
