"""Continue a request with what its turn has done: the messages of each model call after the first."""

from collections.abc import Sequence

from windowpane.context.messages import Step
from windowpane.context.request import Request, RequestMessage
from windowpane.request.prompt.order import with_additions
from windowpane.text.render import render_step


def messages_now(request: Request, steps: Sequence[Step]) -> tuple[RequestMessage, ...]:
    """Return what the next model call is given: the request, then everything this turn has done so far."""
    settings = request.context.settings
    rendered = tuple(message for step in steps for message in render_step(step, settings=settings))
    return request.messages + tuple(with_additions(rendered, _found(request), request.context.turn))


def _found(request: Request) -> dict[int, tuple[str, ...]]:
    """Return the tools that the model asked for, by step, where they are added in the middle of the conversation."""
    found: dict[int, tuple[str, ...]] = {}
    if request.context.settings.additions is not None:
        for item in request.context.items:
            if item.found is not None and item.offered_name:
                found[item.found.step] = (*found.get(item.found.step, ()), item.offered_name)
    return found
