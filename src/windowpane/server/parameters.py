"""What several routes take, described once: from paths and queries, and files in bodies."""

from typing import Annotated, Any, Self

from fastapi import Path, Query
from pydantic import (
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef, ItemType
from windowpane.errors import InvalidInputError
from windowpane.errors.faults import MOST_FAULTS, many_faults

MAX_QUERY_CHARACTERS = 100_000
LARGEST_SEQ = 2**53

AgentName = Annotated[str, Path(description="The agent's name.")]
Id = Annotated[SessionId, Path(description="The session's id.", examples=["ses_0123456789abcdefghjkmnpqrs"])]
TurnNumber = Annotated[int, Path(description="The turn's number, from 1.")]
CallNumber = Annotated[int, Path(description="The call's number within its turn, from 1.")]
SessionCallNumber = Annotated[int, Path(description="The call's number within its session, from 1.")]
Kind = Annotated[ItemType, Path(alias="type", description="What it is: rule, reference or tool.")]
Name = Annotated[str, Path(description="Its name, which may hold anything; percent-encode it.")]
Server = Annotated[str | None, Query(description="The tool's server. A rule or a reference has none.")]
AlsoIn = Annotated[
    str | None,
    Query(description="An open session of the agent that receives the item as well, as if it was added by hand."),
]
Everyone = Annotated[bool, Query(description="The turns of every owner; it needs the scope `manage`.")]


def _few_faults(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError as error:
        if error.error_count() <= MOST_FAULTS:
            raise
        raise PydanticCustomError("many_faults", "{what}", {"what": many_faults(error.error_count())}) from None


FewFaults = WrapValidator(_few_faults)
"""Marks a body that is read by another's class: what is wrong with it is told in short when it is very much."""


class RequestBody(BaseModel):
    """The body of a request. What is wrong with it is told in short when it is very much.

    Otherwise a body of a few megabytes with a million wrong parts would keep the server busy for minutes.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _told_in_short(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return _few_faults(value, handler)


class FileBody(RequestBody):
    """A file. `data` are its bytes in base64; what it is is found out from them, not from its name."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"name": "notes.txt", "data": "SGVsbG8="}]}
    )

    name: Annotated[str, Field(max_length=1000)]
    data: Base64Bytes


def ref_of(kind: ItemType, name: str, server: str | None) -> ItemRef:
    """Return the name of an item.

    Raises:
        InvalidInputError: a tool without a server, or a server without a tool.
    """
    try:
        return ItemRef(kind, name, server)
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
