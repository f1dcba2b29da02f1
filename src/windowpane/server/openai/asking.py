"""What the two ways of asking have in common: tools, session, text, form, and what cannot be asked for."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from fastapi import Header
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from windowpane.context.items import CLIENT_SERVER, ItemRef, Tool, tool_ref
from windowpane.context.request import ResponseFormat
from windowpane.server.json_numbers import check_storable
from windowpane.server.openai.errors import UnsupportedError, failures
from windowpane.server.parameters import RequestBody
from windowpane.server.sse import MEDIA_TYPE
from windowpane.tools.schemas import schema_fault

SESSION = "Windowpane-Session"
TURN = "Windowpane-Turn"
IGNORED = "Windowpane-Ignored"

OURS = frozenset({"messages", "input", "functions", "stop", "max_tokens", "max_completion_tokens", "max_output_tokens"})
"""Parameters that no client can pass on past the record of what is sent."""

SessionHeader = Annotated[
    str | None,
    Header(
        alias=SESSION,
        description="The session that the request belongs to: its id, or a name of your own, which begins one. "
        "`metadata.session` says the same.",
    ),
]
KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="In a session, sending the same message again with the same key joins the first turn.",
    ),
]


def _storable(body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    try:
        check_storable(cast("dict[str, Any]", body))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return cast("dict[str, Any]", body)


def _schema(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if fault := schema_fault(schema):
        raise ValueError(f"it is no JSON schema: {fault}")
    return schema


Storable = BeforeValidator(_storable)
OutputTokens = Annotated[
    int | None,
    Field(ge=1, le=1_000_000),
    BeforeValidator(lambda limit: None if limit == -1 else limit),
    Field(description="-1, as some servers take it, is no limit of the request's own."),
]
_Sequence = Annotated[str, Field(min_length=1)]
Stop = Annotated[
    _Sequence | Annotated[list[_Sequence], Field(max_length=16)] | None,
    Field(description="Sequences before which the answer ends."),
]
Metadata = Annotated[dict[str, JsonValue] | None, Field(description="`session` names the session.")]
FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
Schema = Annotated[dict[str, JsonValue], AfterValidator(_schema)]
ToolChoice = Annotated[
    JsonValue,
    Field(
        description="`auto`, `none`, `required`, `allowed_tools`, or one function, by its name. It is about the "
        "functions in `tools`."
    ),
]


class ImageAddress(BaseModel):
    """An image, as a `data:` address."""

    model_config = ConfigDict(frozen=True)

    url: str


class FileData(BaseModel):
    """A file: `file_data` are its bytes in base64, or as a `data:` address."""

    model_config = ConfigDict(frozen=True)

    filename: str | None = None
    file_data: str | None = None


class ContentPart(FileData):
    """A part of a message: text, an image or a file."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | ImageAddress | None = None
    file: FileData | None = None
    file_url: str | None = None

    @property
    def is_file(self) -> bool:
        """Tell whether the part is a file."""
        return self.type in FILE_PARTS


class NamedSchema(BaseModel):
    """A schema that the answer is to follow."""

    model_config = ConfigDict(frozen=True)

    name: FunctionName | None = None
    described: Annotated[Schema | None, Field(alias="schema")] = None
    description: str | None = None
    strict: bool | None = None


class Function(BaseModel):
    """A function of the client's, offered to the model beside the agent's own tools."""

    model_config = ConfigDict(frozen=True)

    name: FunctionName
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None

    @property
    def tool(self) -> Tool:
        """Return it as a tool."""
        return tool_of(self.name, self.description, self.parameters)


class OtherTool(BaseModel):
    """A tool that is no function, such as one that runs at a provider. It is not offered to the model."""

    model_config = ConfigDict(frozen=True)

    type: str


def kind_of_tool(tool: Any) -> str:
    """Return whether a tool is to be read as a function or as another."""
    kind = cast("Mapping[str, Any]", tool).get("type") if isinstance(tool, Mapping) else getattr(tool, "type", None)
    return "Other" if isinstance(kind, str) and kind != "function" else "Function"


class AnyRequest(RequestBody):
    """What can be asked for either way. Parameters that only advise are taken and passed over."""

    model_config = ConfigDict(extra="allow", frozen=True)

    model: Annotated[str, Field(description="An agent's name.")]
    stream: bool | None = None
    tool_choice: ToolChoice = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: Annotated[float | None, Field(ge=0, le=1)] = None
    metadata: Metadata = None
    store: Annotated[bool | None, Field(description="Show a request without a session in lists of sessions.")] = None
    top_logprobs: int | None = None
    parallel_tool_calls: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: JsonValue = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    user: str | None = None


FILE_PARTS = ("image_url", "input_image", "file", "input_file")
FormKind = Literal["text", "json_object", "json_schema"]


def responses_of(description: str, content: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """Return how an operation documents its answers. Each names the turn that it is recorded as."""
    headers = {
        SESSION: {"description": "The session of the turn.", "schema": {"type": "string"}},
        TURN: {"description": "The turn's number.", "schema": {"type": "integer"}},
        IGNORED: {"description": "Parameters that had no effect, if any.", "schema": {"type": "string"}},
    }
    return {**failures(404, 409, 413, 415), 200: {"description": description, "content": content, "headers": headers}}


def streamed(example: str) -> dict[str, Any]:
    """Return how an operation documents its stream."""
    return {MEDIA_TYPE: {"schema": {"type": "string"}, "example": example}}


def tool_of(name: str, description: str | None, parameters: Mapping[str, Any] | None) -> Tool:
    """Return a tool that the client runs itself."""
    return Tool(
        server=CLIENT_SERVER,
        name=name,
        description=description or "",
        parameters=parameters or {"type": "object", "properties": {}},
        include="manual",
        permission="not_required",
    )


def offered(tools: Sequence[Tool], tool_choice: JsonValue) -> tuple[Tool, ...]:
    """Return the tools that the model may call.

    Raises:
        UnsupportedError: two tools have one name.
    """
    names = [tool.name for tool in tools]
    if twice := next((name for name, times in Counter(names).items() if times > 1), None):
        raise UnsupportedError("tools", f"Two tools are named {twice!r}.", "invalid_value")
    match tool_choice:
        case "none":
            return ()
        case {"type": "allowed_tools"}:
            allowed = _allowed(tool_choice)[1]
            return tuple(tool for tool in tools if tool.name in allowed)
        case _:
            return tuple(tools)


def forced(tools: Sequence[Tool], tool_choice: JsonValue) -> tuple[ItemRef, ...]:
    """Return the tools one of which must be called; none: the model decides.

    Raises:
        UnsupportedError: what must be called is not among the tools, or is nothing that can be forced here.
    """
    names = [tool.name for tool in tools]
    match tool_choice:
        case None | "auto" | "none":
            return ()
        case "required":
            wanted = names
        case {"type": "allowed_tools"}:
            mode, wanted = _allowed(tool_choice)
            if mode == "auto" and set(wanted) <= set(names):
                return ()
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            wanted = [name]
        case _:
            why = "Use 'none', 'auto', 'required', 'allowed_tools', or the name of one function."
            raise UnsupportedError("tool_choice", why)
    if not wanted or not set(wanted) <= set(names):
        raise UnsupportedError("tool_choice", "It must be a function that is in 'tools'.", "invalid_value")
    return tuple(tool_ref(CLIENT_SERVER, name) for name in wanted)


def _allowed(tool_choice: Mapping[str, JsonValue]) -> tuple[str, list[str]]:
    """Return whether one of the allowed functions must be called (`required`) or may be (`auto`), and their names."""
    # Chat puts them one level deeper than responses, and a function's name too.
    said = tool_choice.get("allowed_tools", tool_choice)
    match said:
        case {"mode": "auto" | "required" as mode, "tools": [*tools]}:
            functions = [tool.get("function", tool) if isinstance(tool, dict) else None for tool in tools]
            names = [function.get("name") if isinstance(function, dict) else None for function in functions]
            if all(isinstance(name, str) for name in names):
                return mode, [str(name) for name in names]
        case _:
            pass
    raise UnsupportedError("tool_choice", "Name the allowed functions, with the mode 'auto' or 'required'.")


def form_of(kind: FormKind, described: NamedSchema | None, where: str) -> ResponseFormat | None:
    """Return the form that the answer must have; None: text as it comes.

    Raises:
        UnsupportedError: a schema is announced and not there.
    """
    if kind == "text":
        return None
    if kind == "json_object":
        return ResponseFormat()
    if described is None or described.described is None:
        missing = f"{where}.schema"
        raise UnsupportedError(missing, f"Missing required parameter: '{missing}'.", "missing_required_parameter")
    return ResponseFormat(
        schema=described.described,
        name=described.name or "",
        description=described.description or "",
        strict=described.strict,
    )


def stops(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the stop sequences."""
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def sampling(body: AnyRequest, names: Sequence[str]) -> dict[str, Any]:
    """Return the sampling parameters of a request: those of these names, and those that are not known here.

    Raises:
        UnsupportedError: one of those that are not known would change what is recorded as sent.
    """
    unknown = body.model_extra or {}
    if wrong := next((name for name in unknown if name in OURS), None):
        raise UnsupportedError(wrong, f"Unknown parameter: '{wrong}'.", "unknown_parameter")
    known = {name: value for name in names if (value := getattr(body, name)) is not None}
    return known | {name: value for name, value in unknown.items() if value is not None}


def asked_in_vain(body: AnyRequest, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of these parameters that ask for something."""
    return tuple(name for name in names if getattr(body, name))


def left_out(tools: Iterable[object]) -> tuple[str, ...]:
    """Return the tools that are no functions, as the client is told that they had no effect."""
    return tuple(dict.fromkeys(f"tools.{tool.type}" for tool in tools if isinstance(tool, OtherTool)))


def session_of(header: str | None, metadata: Mapping[str, JsonValue] | None) -> str | None:
    """Return the session that a request names, or None.

    Raises:
        UnsupportedError: what it names cannot be a session.
    """
    named = header if header is not None else (metadata or {}).get("session")
    if not isinstance(named, str | None):
        raise UnsupportedError("metadata.session", "A session is named by a text.", "invalid_type")
    return named


def refuse(given: Mapping[str, Any], allowed: Mapping[str, Sequence[Any]]) -> None:
    """Refuse what this server cannot do, rather than answer as if it had not been asked for.

    Raises:
        UnsupportedError: a parameter has a value that it may not have here.
    """
    for name, values in allowed.items():
        value = given.get(name)
        if value is not None and value not in values:
            raise UnsupportedError(name, f"Unsupported value: {name!r} cannot be used here with this value.")


def text_of(content: str | Sequence[ContentPart] | None, where: str) -> str:
    """Return what a message says beside its files.

    Raises:
        UnsupportedError: it says something other than text and files.
    """
    if content is None or isinstance(content, str):
        return content or ""
    for place, part in enumerate(content):
        if part.type not in ("text", "input_text", "output_text", "refusal", *FILE_PARTS):
            why = f"Only text, images and files can be sent here, not {part.type!r}."
            raise UnsupportedError(f"{where}[{place}]", why)
    return "".join(part.text or part.refusal or "" for part in content)


def joined(texts: Iterable[str]) -> str:
    """Return texts as one."""
    return "\n\n".join(text for text in texts if text)
