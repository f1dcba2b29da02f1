"""Build the system block: who the agent is, before any item is added.

The one order is core prompt, then the session's own override, exactly once and last. Files are read by the agent's
folder, so an edit is in the next request.
"""

from dataclasses import dataclass

from windowpane.agents.base import Agent
from windowpane.context.request import PartKind
from windowpane.context.session import SessionSettings
from windowpane.errors import MissingCorePromptError


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the system block."""

    kind: PartKind
    name: str
    text: str


def build_prompt(agent: Agent, settings: SessionSettings) -> tuple[Section, ...]:
    """Return the sections of the system block, in order.

    Raises:
        MissingCorePromptError: the agent has no core prompt.
    """
    if agent.prompts.core is None or not agent.prompts.core.strip():
        raise MissingCorePromptError(agent.name, f"{agent.folder}/prompts/core.md")
    sections = [Section("core", "core", agent.prompts.core)]
    if settings.system_prompt:
        sections.append(Section("override", "override", settings.system_prompt))
    return tuple(sections)
