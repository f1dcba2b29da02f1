"""Sessions under names that clients give them.

A client that was not made for Windowpane has a name of its own for a conversation, such as a thread's id, and no way to
ask for a session first. Such a name stands for one session of its owner and agent, which begins when it is first used.
A name that is a session's id stands for that session.
"""

from windowpane.context.ids import named_session_id
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError, SequenceConflictError, SessionNotFoundError
from windowpane.local.pane import LocalPane

LONGEST_NAME = 200


async def session_named(pane: LocalPane, owner: str, agent: str, name: str) -> SessionState:
    """Return the caller's session of this name, which begins now if there is none.

    Raises:
        SessionNotFoundError: the name is an id, and the caller has no such session.
        AgentNotFoundError: no such agent.
        InvalidInputError: the name cannot be used, or the session is another agent's.
        WorkerFullError: there is no such session yet, and no place for its turn.
        TooManyTurnsError: the same, and the owner has no place.
    """
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidInputError(f"a session's name has 1 to {LONGEST_NAME} characters, all of them printing ones")
    if name.startswith("ses_"):
        state = await pane.engine.sessions.get(await pane.own(name))
    else:
        state = await _begun(pane.engine, owner, agent, name)
    if state.agent != agent:
        raise InvalidInputError(f"the session {name!r} is one of the agent {state.agent!r}, not of {agent!r}")
    return state


async def _begun(engine: Engine, owner: str, agent: str, name: str) -> SessionState:
    session_id = named_session_id(owner, agent, name)
    try:
        return await engine.sessions.get(session_id)
    except SessionNotFoundError:
        # A session that is new begins with a turn.
        engine.admission.check(owner)
    try:
        return await engine.sessions.create(agent, owner=owner, name=name, session_id=session_id)
    except SequenceConflictError:
        # Another request with the same name was a little faster.
        return await engine.sessions.get(session_id)
