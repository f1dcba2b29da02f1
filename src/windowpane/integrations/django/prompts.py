"""The prompt builder of existing code: the same call, with the agent's prompts behind it."""

from datetime import UTC, datetime

from windowpane.context.session import SessionSettings
from windowpane.engine import Engine
from windowpane.integrations.django.manager import ContextManager, get_context_manager
from windowpane.request.prompt.sections import build_prompt
from windowpane.request.settings import checked_changes


class PromptBuilder:
    """Builds system prompts from the agent's folder, as it is now."""

    def __init__(self, manager: ContextManager | None = None) -> None:
        self._manager = manager or get_context_manager()

    def build(
        self,
        current_url: str | None = None,
        system_prompt: str | None = None,
        user_timezone: str | None = None,
        user_time: str | None = None,
    ) -> str:
        """Return core prompt, site skill or default, user context, time context and the override, in this order.

        Raises:
            MissingCorePromptError: the agent has no core prompt.
            InvalidSettingError: the time or the zone cannot be read.
        """
        given = {"current_url": current_url, "time_zone": user_timezone, "user_time": user_time}
        settings = SessionSettings(
            **checked_changes({name: value for name, value in given.items() if value}),
            system_prompt=system_prompt or None,
        )

        async def built(engine: Engine) -> str:
            agent = engine.agents.current(self._manager.agent_of(engine))
            return "\n\n".join(section.text for section in build_prompt(agent, settings, now=datetime.now(UTC)))

        return self._manager.running.ask(built)
