"""Check a filled-in form. Its schema is a tool server's, and its answer a user's: neither may keep the server busy.

Only the keywords of MCP's forms count, and the other bounds of numbers. A `pattern` may take for ever to match, and a
`$ref` may name an address to fetch: they are left to the tool server, which checks what it is given. Choices are looked
up, so that a long list of answers is not compared with a long list of choices, one by one.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, cast

from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft202012Validator, create  # pyright: ignore[reportUnknownVariableType]

from windowpane.context.identity_cache import cached_by_identity
from windowpane.errors import InvalidInputError

CHECKED = (
    *("type", "properties", "required", "const", "minLength", "maxLength", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "items", "minItems", "maxItems"),
)
MOST_TOLD = 20
"""How many choices are repeated to a user whose answer is none of them."""

Faults = Generator[ValidationError, None, None]


def check_filled(filled: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Make sure that a form is filled in as it must be.

    Raises:
        InvalidInputError: it is not; the first field that is wrong is named.
    """
    fault = next(_Form(schema).iter_errors(filled), None)
    if fault is not None:
        where = ".".join(map(str, fault.absolute_path))
        raise InvalidInputError(f"{where or 'the form'}: {fault.message}")


def _enum(validator: Any, choices: Sequence[Any], value: Any, schema: Any) -> Faults:
    if _key(value) not in _keys(choices):
        yield _none_of(value, choices)


def _alternatives(keyword: str) -> Any:
    """Return the check of choices with titles, which MCP writes as alternatives of one constant each."""
    usual = Draft202012Validator.VALIDATORS[keyword]

    def check(validator: Any, choices: Sequence[Any], value: Any, schema: Any) -> Faults:
        constants = _constants(choices)
        if constants is None:
            yield from usual(validator, choices, value, schema)
        elif _key(value) not in _keys(constants):
            yield _none_of(value, constants)

    return check


def _none_of(value: Any, choices: Sequence[Any]) -> ValidationError:
    told = repr(list(choices)) if len(choices) <= MOST_TOLD else f"the {len(choices):,} choices"
    return ValidationError(f"{value!r} is not one of {told}")


def _key(value: Any) -> Any:
    """Return something that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return ("list", *map(_key, cast("list[Any]", value)))
    if isinstance(value, dict):
        return frozenset((name, _key(each)) for name, each in cast("dict[str, Any]", value).items())
    return value


def _all_keys(choices: Sequence[Any]) -> frozenset[Any]:
    return frozenset(map(_key, choices))


def _titled(choices: Sequence[Any]) -> list[Any] | None:
    if all(isinstance(each, dict) and "const" in each and each.keys() <= _TITLED for each in choices):
        return [each["const"] for each in choices]
    return None


_TITLED = {"const", "title", "description"}
_keys = cached_by_identity(_all_keys, 16)
_constants = cached_by_identity(_titled, 16)
_Form: Any = create(
    meta_schema=Draft202012Validator.META_SCHEMA,
    validators={
        **{keyword: Draft202012Validator.VALIDATORS[keyword] for keyword in CHECKED},
        "enum": _enum,
        "anyOf": _alternatives("anyOf"),
        "oneOf": _alternatives("oneOf"),
    },
    type_checker=Draft202012Validator.TYPE_CHECKER,
)
