"""A tool server made with the official library, newest protocol first.

    by_sdk.py stdio
    by_sdk.py http PORT [legacy] [token=SECRET]

With `legacy` it knows only the protocol of 2025, with sessions; with a token it refuses everybody else.
"""

import base64
import os
import sys
import time
from typing import Annotated, Any, Literal

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve, Sample
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("by-sdk", version="1.2", log_level="ERROR")
OPTIONS = sys.argv[1:]


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("the disk is full")


@server.tool()
def pid() -> str:
    """Return the number of this process."""
    return str(os.getpid())


@server.tool()
def shapes(kind: str) -> CallToolResult:
    """Return a result of some kind."""
    data = base64.b64encode(b"12345").decode()
    contents: dict[str, Any] = {
        "image": [TextContent(text="Look:"), ImageContent(data=data, mime_type="image/png")],
        "audio": [AudioContent(data=data, mime_type="audio/wav")],
        "text resource": [EmbeddedResource(resource=TextResourceContents(uri="memo://a.txt", text="in a file"))],
        "blob resource": [EmbeddedResource(resource=BlobResourceContents(uri="memo://a.bin", blob=data))],
        "link": [ResourceLink(uri="memo://b.txt", name="b")],
        "nothing": [],
        "structured": [],
        "huge": [TextContent(text="x" * 3_000_000)],
    }
    structured = {"größe": [1, 2]} if kind == "structured" else None
    return CallToolResult(content=contents[kind], structured_content=structured)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@server.tool()
def search_files(query: str) -> CallToolResult:
    """Name the files that match."""
    names = ["notes.txt", "pixel.png", "long.txt", "gone.txt"] if query else []
    return CallToolResult(content=[ResourceLink(uri=f"memo://{name}", name=name) for name in names])


@server.resource("memo://notes.txt")
def notes() -> str:
    """Return a text."""
    return "The door code is 4711."


@server.resource("memo://long.txt")
def long_text() -> str:
    """Return a text that is longer than a result may be."""
    return "x" * 3_000_000


@server.resource("memo://pixel.png", mime_type="image/png")
def pixel() -> bytes:
    """Return an image."""
    return base64.b64decode(PIXEL)


@server.resource("memo://secret.txt")
def secret() -> str:
    """Return what no result names."""
    return "Secret."


@server.tool()
async def sleep(seconds: float, ctx: Context, reports: int = 0) -> str:
    """Sleep."""
    for number in range(reports):
        await anyio.sleep(seconds / reports)
        await ctx.report_progress(number + 1, reports)
    if reports:
        return "awake"
    await anyio.sleep(seconds)
    return "slept"


@server.tool()
def crash() -> str:
    """Stop the whole process in the middle of the call."""
    sys.stderr.write("out of memory\n")
    sys.stderr.flush()
    time.sleep(0.1)
    os._exit(3)


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Get one more tool."""
    server.add_tool(pid, name=name, description="New.")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


class Size(BaseModel):
    """What an order needs to know."""

    size: Literal["small", "large"]
    sugar: int = Field(default=0, ge=0, le=3)


def ask_size(drink: str) -> Elicit[Size]:
    """Return what is asked about a drink."""
    return Elicit(f"Which size of {drink}?", Size)


@server.tool()
async def order(drink: str, wanted: Annotated[ElicitationResult[Size], Resolve(ask_size)]) -> str:
    """Order a drink, after asking the user for its size; either protocol."""
    return f"{wanted.data.size} {drink}, {wanted.data.sugar} sugar" if wanted.action == "accept" else wanted.action


def ask_model(text: str) -> Sample:
    """Return what the model is asked about a text."""
    message = SamplingMessage(role="user", content=TextContent(text=f"Sum up: {text}"))
    return Sample([message], max_tokens=50, system_prompt="Be brief.")


@server.tool()
async def sum_up(text: str, said: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Sum a text up, by the client's model; either protocol."""
    return f"{said.model} said: {said.content.text if isinstance(said.content, TextContent) else ''}"


SIGN_IN, SAMPLE, NAME = "sign-in", "sample", "name"
NAMED = {"type": "string", "maxLength": 20, "pattern": "^(a+)+$", "$ref": "#/$defs/none"}
NEWEST = "2026-07-28"
signed_in: list[str] = []


@server.tool()
async def sign_in(address: str, ctx: Context, by_error: bool = True) -> str | InputRequiredResult:
    """Have the user open an address first. An older server asks for it by an error, or in the middle of the call."""
    wanted = ElicitRequestURLParams(message="Please sign in.", url=address, elicitation_id=SIGN_IN)
    if ctx.protocol_version == NEWEST:
        answered = (ctx.input_responses or {}).get(SIGN_IN)
        if not isinstance(answered, ElicitResult):
            return InputRequiredResult(input_requests={SIGN_IN: ElicitRequest(params=wanted)})
        return answered.action
    if not by_error:
        return (await ctx.elicit_url(wanted.message, address, SIGN_IN)).action
    if address not in signed_in:
        signed_in.append(address)
        raise UrlElicitationRequiredError([wanted])
    return "accept"


@server.tool()
async def call_it(ctx: Context) -> str | InputRequiredResult:
    """Ask the user for a name, by a form with more in it than the protocol has for forms; the newer protocol."""
    answered = (ctx.input_responses or {}).get(NAME)
    if isinstance(answered, ElicitResult):
        return f"called {(answered.content or {}).get(NAME)}"
    wanted = {"type": "object", "properties": {NAME: NAMED}, "required": [NAME]}
    params = ElicitRequestFormParams(message="Which name?", requested_schema=wanted)
    return InputRequiredResult(input_requests={NAME: ElicitRequest(params=params)})


@server.tool()
async def consult(times: int, words: int, max_tokens: int, ctx: Context) -> str | InputRequiredResult:
    """Ask the client's model so many times, each time with so many words."""
    said = SamplingMessage(role="user", content=TextContent(text="word " * words))
    if ctx.protocol_version == NEWEST:
        asked = int(ctx.request_state or "0")
        if asked == times:
            return f"asked {asked} times"
        wanted = CreateMessageRequest(params=CreateMessageRequestParams(messages=[said], max_tokens=max_tokens))
        return InputRequiredResult(input_requests={SAMPLE: wanted}, request_state=str(asked + 1))
    for _ in range(times):
        # Deprecated in the newest protocol; this is for the older one.
        await ctx.session.create_message([said], max_tokens=max_tokens)  # pyright: ignore[reportDeprecated]
    return f"asked {times} times"


class Gate:
    """Lets through what the options allow."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        headers = {key.decode(): value.decode() for key, value in scope.get("headers", [])}
        token = next((option.removeprefix("token=") for option in OPTIONS if option.startswith("token=")), None)
        if scope["type"] == "http" and token and headers.get("authorization") != f"Bearer {token}":
            await PlainTextResponse("who are you?", 401)(scope, receive, send)
        elif scope["type"] == "http" and "legacy" in OPTIONS and "mcp-method" in headers:
            await PlainTextResponse("bad request", 400)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


if OPTIONS[0] == "stdio":
    server.run("stdio")
else:
    uvicorn.run(
        Gate(server.streamable_http_app()), port=int(OPTIONS[1]), log_level="error", timeout_graceful_shutdown=1
    )
