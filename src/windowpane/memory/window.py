"""How much a model takes in: the window that is known of it, and how its tokens compare with ours.

What a model reported or refused in a session counts for this model in this session.
"""

from windowpane.agents.base import Agent
from windowpane.context.calls import HIGHEST_FACTOR, LOWEST_FACTOR, SURE_CALLS, SmallerWindow, TokenFactor
from windowpane.context.request import counted_room
from windowpane.context.session import SessionState
from windowpane.models.base import LOCAL

DEFAULT_WINDOW_TOKENS = 32_768


def window_of(agent: Agent, model_window_tokens: int | None, refused: SmallerWindow | None = None) -> tuple[int, str]:
    """Return the size of the window in tokens, and who says so. `refused` is what a refusal of the model showed."""
    tokens, source = _listed_window(agent, model_window_tokens)
    return (refused.tokens, "refusal") if refused is not None and refused.tokens < tokens else (tokens, source)


def _listed_window(agent: Agent, model_window_tokens: int | None) -> tuple[int, str]:
    if agent.settings.context_window:
        return agent.settings.context_window, "agent.yaml"
    if model_window_tokens:
        return model_window_tokens, "model"
    return DEFAULT_WINDOW_TOKENS, "assumed"


def refused_window(refused: SmallerWindow | None, model: str) -> SmallerWindow | None:
    """Return what a refusal showed, if it was this model's."""
    return refused if refused is not None and refused.model == model else None


def learned_factor(session: SessionState, model: str) -> float:
    """Return how many tokens of a model one of our count is, as far as the session's calls have shown."""
    refused, learned = refused_window(session.smaller_window, model), _learned(session, model)
    if refused is not None and not refused.exact:
        return refused.factor
    if learned is None:
        return 1.0
    known = learned.without_tools.mean if model == LOCAL else learned.factor
    return round(min(max(known, LOWEST_FACTOR), HIGHEST_FACTOR), 4)


def tools_shown(session: SessionState, model: str) -> bool:
    """Tell whether a model's server shows it tools, as far as the session's calls have shown."""
    learned = _learned(session, model)
    return model != LOCAL and (learned is None or learned.tools_shown)


def _learned(session: SessionState, model: str) -> TokenFactor | None:
    learned = session.token_factor
    return learned if learned is not None and learned.model == model else None


def report_notes(session: SessionState, model: str) -> tuple[str, ...]:
    """Return what is to be said of a model that reports far fewer tokens than its requests can have."""
    learned = _learned(session, model)
    if not tools_shown(session, model):
        return (f"{model}: the model's server leaves tools out of the prompt, its chat template does not show them",)
    if learned is None or learned.calls < SURE_CALLS or learned.factor >= LOWEST_FACTOR:
        return ()
    return (
        f"{model} reports {learned.factor:.0%} of the tokens that were sent to it: its server may leave parts of the "
        "prompt out, such as tools; `windowpane doctor --ask` tries it",
    )


def counted_window(agent: Agent, session: SessionState, model: str, model_window_tokens: int | None) -> int:
    """Return how many tokens of our count a model takes in and gives out together."""
    tokens, _ = window_of(agent, model_window_tokens, refused_window(session.smaller_window, model))
    return counted_room(tokens, learned_factor(session, model))
