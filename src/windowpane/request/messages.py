"""Continue a request with what its turn has done: the messages of each model call after the first."""

from collections.abc import Sequence

from windowpane.context.messages import Step
from windowpane.context.request import Request, RequestMessage
from windowpane.text.render import render_step


def messages_now(request: Request, steps: Sequence[Step]) -> tuple[RequestMessage, ...]:
    """Return what the next model call is given: the request, then everything this turn has done so far."""
    return request.messages + tuple(message for step in steps for message in render_step(step))
