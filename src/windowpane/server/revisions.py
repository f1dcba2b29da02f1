"""Revisions over HTTP: an `ETag` says which revision was read, `If-Match` which one a change is meant for.

Two people who edit the same thing cannot undo one another without noticing: the second gets a 412 with the revision
that is there now. A change must say what it knows; `If-Match: *` says that it does not matter.
"""

import re
from typing import Annotated

from fastapi import Header, Response

from windowpane.errors import InvalidInputError, RevisionMissingError

ANY = "*"
_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e]*)"')

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=200,
        pattern=r'^(\*|(W/)?"[!#-~]*")$',
        description="The `ETag` of the revision that this is a change of, or `*` for whatever is there.",
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=200, pattern=r"^\*$", description="`*`: only if there is none yet."),
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same call again with the same key makes nothing new and gives the same answer.",
    ),
]


def expected(if_match: str | None) -> str:
    """Return the revision that a change is meant for.

    Raises:
        RevisionMissingError: none was given.
        InvalidInputError: it is not an `ETag`.
    """
    if if_match is None:
        raise RevisionMissingError
    if if_match.strip() == ANY:
        return ANY
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        raise InvalidInputError('If-Match must be one ETag, such as "4f2a", in its quotes, or *')
    return found.group(1)


def expected_or_new(if_match: str | None, if_none_match: str | None) -> str | None:
    """Return the revision that a change is meant for, or None when the thing must be new.

    Raises:
        RevisionMissingError: neither was given.
        InvalidInputError: one of them cannot be used.
    """
    if if_none_match is None:
        return expected(if_match)
    if if_none_match.strip() != ANY or if_match is not None:
        raise InvalidInputError("If-None-Match must be * here, and stand alone")
    return None


def tag(response: Response, revision: str) -> None:
    """Say in an answer which revision it is of."""
    response.headers["ETag"] = f'"{revision}"'
