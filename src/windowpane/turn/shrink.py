"""Make a request smaller that its model refused as too long.

Our count of tokens is not the model's, and a server may have been started with a smaller window than the list says.
So one refusal leads to one more try, for a window that the refusal names, or for a good part of what was sent.
"""

from windowpane.context.calls import SmallerWindow
from windowpane.context.request import Request
from windowpane.context.session import OpenTurn
from windowpane.errors import RequestTooLongError
from windowpane.request.messages import messages_now
from windowpane.text.tokens import counted_tokens, family_for

KEPT_SHARE = 0.7
"""How much of what was refused is sent again, when the refusal names no window."""

RESERVE = 1.05
"""What is counted next may be counted a little worse than what was refused."""


def smaller_window(request: Request, turn: OpenTurn, error: RequestTooLongError) -> SmallerWindow:
    """Return the window, in the model's tokens, that a request must be built for after a refusal."""
    budget, model = request.context.budget, request.context.settings.model
    counted = counted_tokens(messages_now(request, turn.steps), request.tools, family_for(request.context.settings))
    if error.reported_tokens and error.window_tokens:
        factor = max(error.reported_tokens / counted, budget.token_factor) * RESERVE
        return SmallerWindow(model, error.window_tokens, round(factor, 4), exact=True)
    tokens = budget.reply_tokens + int(counted * budget.token_factor * KEPT_SHARE)
    return SmallerWindow(model, tokens, budget.token_factor, exact=False)
