"""Windowpane: the context engine for chat agents.

It decides what goes into every model request, records exactly what went in and why, and shows it, live and for
any past turn.

    import windowpane

    async with windowpane.open(agents="agents", store="memory:") as pane:
        session = await pane.sessions.create()
        async for event in pane.turn(session.id, "How do I add a rule?"):
            if isinstance(event, windowpane.Delta):
                print(event.text, end="")

The names in `__all__` and those of `windowpane.testing` are the public interface; every other module is private to the
project. Each name is imported when it is first used, so `import windowpane` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowpane.agents.importers.run import import_into
    from windowpane.agents.init import init_agent
    from windowpane.api.analytics import Dashboard
    from windowpane.api.comparison import Comparison
    from windowpane.api.explanation import Explanation
    from windowpane.api.pane import Pane
    from windowpane.api.replay import WhatIf
    from windowpane.api.sessions import SessionView
    from windowpane.api.turns import TurnRecord, TurnView
    from windowpane.client import Client
    from windowpane.context.events import (
        ApprovalRequested,
        Delta,
        ModelReplied,
        Recorded,
        RequestBuilt,
        ToolReturned,
        TurnFinished,
        TurnStarted,
    )
    from windowpane.context.items import ItemRef, Reference, Rule, Tool
    from windowpane.context.messages import Attachment, NewFile, ToolResult
    from windowpane.context.request import ReplyOptions, Request, RequestContext
    from windowpane.engine import Engine
    from windowpane.errors import (
        ConflictError,
        InvalidInputError,
        ModelError,
        NotFoundError,
        RemoteError,
        SessionBusyError,
        SessionNotFoundError,
        WindowpaneError,
    )
    from windowpane.library import open, open_sync  # noqa: A004 – `windowpane.open` is how it is written
    from windowpane.local.pane import LocalPane
    from windowpane.settings import Settings

    __version__: str

__all__ = [
    "ApprovalRequested",
    "Attachment",
    "Client",
    "Comparison",
    "ConflictError",
    "Dashboard",
    "Delta",
    "Engine",
    "Explanation",
    "InvalidInputError",
    "ItemRef",
    "LocalPane",
    "ModelError",
    "ModelReplied",
    "NewFile",
    "NotFoundError",
    "Pane",
    "Recorded",
    "Reference",
    "RemoteError",
    "ReplyOptions",
    "Request",
    "RequestBuilt",
    "RequestContext",
    "Rule",
    "SessionBusyError",
    "SessionNotFoundError",
    "SessionView",
    "Settings",
    "Tool",
    "ToolResult",
    "ToolReturned",
    "TurnFinished",
    "TurnRecord",
    "TurnStarted",
    "TurnView",
    "WhatIf",
    "WindowpaneError",
    "__version__",
    "import_into",
    "init_agent",
    "open",
    "open_sync",
]

_NAMES = {
    "agents.importers.run": ("import_into",),
    "agents.init": ("init_agent",),
    "api.analytics": ("Dashboard",),
    "api.comparison": ("Comparison",),
    "api.explanation": ("Explanation",),
    "api.pane": ("Pane",),
    "api.replay": ("WhatIf",),
    "api.sessions": ("SessionView",),
    "api.turns": ("TurnRecord", "TurnView"),
    "client": ("Client",),
    "context.events": (
        "ApprovalRequested",
        "Delta",
        "ModelReplied",
        "Recorded",
        "RequestBuilt",
        "ToolReturned",
        "TurnFinished",
        "TurnStarted",
    ),
    "context.items": ("ItemRef", "Reference", "Rule", "Tool"),
    "context.messages": ("Attachment", "NewFile", "ToolResult"),
    "context.request": ("ReplyOptions", "Request", "RequestContext"),
    "engine": ("Engine",),
    "errors": (
        "ConflictError",
        "InvalidInputError",
        "ModelError",
        "NotFoundError",
        "RemoteError",
        "SessionBusyError",
        "SessionNotFoundError",
        "WindowpaneError",
    ),
    "library": ("open", "open_sync"),
    "local.pane": ("LocalPane",),
    "settings": ("Settings",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("windowpane")
    elif name in _MODULES:
        value = getattr(import_module(f"windowpane.{_MODULES[name]}"), name)
    else:
        raise AttributeError(f"module 'windowpane' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
