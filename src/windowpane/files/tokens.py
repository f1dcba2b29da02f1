"""What a file costs in tokens, by the rule of the provider's family.

Google counts tiles of 768 pixels, Anthropic one token for 750 pixels of an image that was made to fit 1,568, OpenAI
tiles of 512 pixels of one that was made to fit 2,048 and whose shorter side is 768 then. Of other models no rule is
known: an estimate stands in, and says so.
"""

import math

from windowpane.context.messages import Attachment

TILE_TOKENS = 258
"""What Google counts for a tile, and for a page of a PDF."""

PDF_PAGE_TOKENS = {"anthropic": 2250, "openai": 1500, "google": TILE_TOKENS}
"""What a page costs: its words and its picture. Anthropic says 1,500 to 3,000; OpenAI gives no number."""

OTHER_PAGE_TOKENS = 1500


def file_tokens(attachment: Attachment, model: str) -> tuple[int, bool]:
    """Return what a file costs that is sent as it is to `provider:model`, and whether that is an estimate."""
    family = provider_family(model)
    if attachment.kind == "pdf":
        tokens = PDF_PAGE_TOKENS.get(family, OTHER_PAGE_TOKENS) * max(attachment.pages, 1)
        return tokens, family != "google" or not attachment.pages
    width, height = attachment.width, attachment.height
    match family:
        case "openai":
            return _openai(width, height), False
        case "anthropic":
            return _anthropic(width, height), False
        case "google":
            return _google(width, height), False
        case _:
            return _openai(width, height), True


def provider_family(model: str) -> str:
    """Return whose rule holds for `provider:model`."""
    provider, _, name = model.partition(":")
    if "claude" in name:
        return "anthropic"
    return {"azure": "openai"}.get(found := provider.partition("-")[0], found)


def _openai(width: int, height: int) -> int:
    scale = min(1.0, 2048 / max(width, height, 1))
    scale *= min(1.0, 768 / max(min(width, height) * scale, 1))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * max(tiles, 1)


def _anthropic(width: int, height: int) -> int:
    scale = min(1.0, 1568 / max(width, height, 1))
    return max(1, math.ceil(width * scale * height * scale / 750))


def _google(width: int, height: int) -> int:
    if width <= 384 and height <= 384:
        return TILE_TOKENS
    return TILE_TOKENS * math.ceil(width / 768) * math.ceil(height / 768)
