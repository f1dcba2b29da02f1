"""Tell what is wrong with the JSON schema of a tool's arguments."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft7Validator, SchemaError


def schema_fault(schema: Mapping[str, Any]) -> str:
    """Return what is wrong with a JSON schema; empty: nothing that providers look at."""
    return _fault(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=4096)
def _fault(schema_text: str) -> str:
    """Return what is wrong with a schema. Lists are read again and again, and this is the slow part.

    Draft 7 has what providers look at, and is checked six times faster than the drafts after it. Its keywords are
    theirs too, but for the name of the place where definitions stand.
    """
    schema: dict[str, Any] = json.loads(schema_text)
    try:
        Draft7Validator.check_schema(schema | {"definitions": schema.get("$defs", schema.get("definitions", {}))})
    except SchemaError as error:
        return error.message
    except RecursionError:
        return "it is nested too deeply"
    return ""
