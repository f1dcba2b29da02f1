"""What providers do with the beginning of a prompt that they have read before.

They charge less for it, or take less time. How much less comes from the price list; how long they keep it, and whether
tools can be added in the middle of a conversation, from here.
"""

from dataclasses import replace
from datetime import timedelta

from windowpane.context.calls import ModelPrice
from windowpane.context.messages import ECHO
from windowpane.models.base import CacheRules

LOCAL = CacheRules(least_tokens=0)
"""Servers of open models, such as llama.cpp, vLLM and Ollama: nothing is charged, and what was read takes no time."""

_TTLS = {
    "anthropic": timedelta(minutes=5),
    "bedrock": timedelta(minutes=5),
    "openai": timedelta(minutes=10),
    "google": timedelta(minutes=5),
}
_USUAL_TTL = timedelta(minutes=10)
_MILLION = 1_000_000
_SERVERS = ("ollama", "vllm", "llamacpp", "lmstudio")
_LISTED_AS = {"openai-chat": "openai", "openai-responses": "openai", "google-cloud": "google", "xai": "x-ai"}


def rules_of(name: str, *, own_server: bool = False) -> CacheRules | None:
    """Return what the provider of `provider:model` does, or None when it keeps nothing or that is not known.

    `own_server`: the calls go to another server than the provider's own.
    """
    provider, _, model = name.partition(":")
    if name == ECHO:
        return None
    if own_server or provider in _SERVERS:
        return LOCAL
    if not model:
        return None
    listed = _LISTED_AS.get(provider, provider)
    found = _priced(listed, model)
    return None if found is None else replace(found, ttl=_TTLS.get(listed, _USUAL_TTL))


def with_price(rules: CacheRules | None, price: ModelPrice | None) -> CacheRules | None:
    """Return what a provider does, with what the agent says that its model costs.

    A price for reading again says that the provider keeps what it reads, also where no list says so.
    """
    if price is None or not price.input:
        return rules
    if price.cache_read is None:
        return None if rules is None else replace(rules, input_usd=price.input / _MILLION)
    if price.cache_read >= price.input:
        return None
    written = price.input if price.cache_write is None else price.cache_write
    return replace(
        rules or CacheRules(ttl=_USUAL_TTL),
        read=round(price.cache_read / price.input, 4),
        write=round(written / price.input, 4),
        input_usd=price.input / _MILLION,
    )


def _priced(provider: str, model: str) -> CacheRules | None:
    # Not at the top: the list takes half a second to load, and the built-in model does not need it.
    from genai_prices import Usage, calc_price

    def dollars(usage: Usage) -> float:
        return float(calc_price(usage, model, provider_id=provider).total_price)

    some = 1000
    try:
        plain = dollars(Usage(input_tokens=some))
        read = dollars(Usage(input_tokens=some, cache_read_tokens=some))
        write = dollars(Usage(input_tokens=some, cache_write_tokens=some))
    except (LookupError, ValueError):
        return None
    if not plain or not 0 < read < plain:
        return None
    # Where writing has no price of its own, it is part of the input.
    return CacheRules(read=round(read / plain, 4), write=round(max(write, plain) / plain, 4), input_usd=plain / some)
