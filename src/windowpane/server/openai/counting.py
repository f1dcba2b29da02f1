"""How many tokens a client's request would take, without sending it."""

from windowpane.local.pane import LocalPane
from windowpane.request.assemble import offered_tool
from windowpane.server.openai.conversation import ClientRequest, session_for
from windowpane.server.openai.errors import UnsupportedError
from windowpane.text.tokens import family_for, tools_tokens
from windowpane.tools.names import offered_name


async def tokens_of(pane: LocalPane, owner: str, asked: ClientRequest) -> int:
    """Return what the whole request would take by our count: prompt, items and tools of the agent included.

    Raises:
        UnsupportedError: nothing is said that could be answered.
    """
    if not asked.said:
        raise UnsupportedError("messages", "There is no message to count.", "invalid_value")
    engine = pane.engine
    state, made = await session_for(pane, owner, asked)
    try:
        request = await engine.preview(state.id, asked.said[-1].text or "-", asked.said[-1].files)
        tools = [offered_tool(tool, offered_name(tool.ref)) for tool in asked.brought]
        return request.context.budget.used_tokens + tools_tokens(tools, family_for(request.context.settings))
    finally:
        if made:
            await engine.sessions.delete(state.id)
