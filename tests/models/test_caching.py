"""What an agent says that a model costs decides how its prompts are kept."""

from datetime import timedelta

from windowpane.context.calls import ModelPrice
from windowpane.models.base import CacheRules
from windowpane.models.caching import LOCAL, with_price

LISTED = CacheRules(read=0.1, write=1.25, ttl=timedelta(minutes=5), additions="by_reference", input_usd=0.000003)


def test_without_prices_the_list_decides() -> None:
    assert with_price(LISTED, None) == LISTED
    assert with_price(None, None) is None


def test_prices_of_reading_and_writing_take_the_place_of_the_list_s() -> None:
    price = ModelPrice(input=4, output=8, cache_read=1, cache_write=6)

    assert with_price(LISTED, price) == CacheRules(
        read=0.25, write=1.5, ttl=timedelta(minutes=5), additions="by_reference", input_usd=0.000004
    )


def test_a_price_for_reading_says_that_a_provider_keeps_what_it_reads() -> None:
    price = ModelPrice(input=2, output=8, cache_read=1)

    assert with_price(None, price) == CacheRules(read=0.5, write=1.0, ttl=timedelta(minutes=10), input_usd=0.000002)
    assert with_price(LISTED, ModelPrice(input=2, output=8, cache_read=2)) is None


def test_a_price_of_input_alone_changes_the_dollars_and_nothing_else() -> None:
    price = ModelPrice(input=1, output=2)

    assert with_price(LOCAL, price) == CacheRules(least_tokens=0, input_usd=0.000001)
    assert with_price(None, price) is None
