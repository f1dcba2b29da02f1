"""How much a model can take in, from the price list that comes with genai-prices. It is read offline."""

from genai_prices.data_snapshot import get_snapshot

_LISTED_AS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure-responses": "azure",
    "google-cloud": "google",
    "bedrock": "aws",
    "xai": "x-ai",
}


def window_tokens(provider: str, model: str) -> int | None:
    """Return the size of the model's window in tokens, or None when it is not listed."""
    try:
        _, listed = get_snapshot().find_provider_model(model, None, _LISTED_AS.get(provider, provider), None)
    except LookupError:
        return None
    return listed.context_window
