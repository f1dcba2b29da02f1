"""Whole numbers as JSON has them: 2.0 is one, and neither "2" nor true is."""

from typing import Annotated

from pydantic import BeforeValidator, Field


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole), Field(strict=True)]
