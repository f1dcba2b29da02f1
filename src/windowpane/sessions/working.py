"""The working context of sessions: one way to change it, for every caller.

The tools of the model, the API, the command line and the MCP server all end here. A change is decided on the newest
state, so changes from several processes lose nothing and keep to the caps together. It is saved first and told after;
what is refused, and what changes nothing, leaves no trace.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from windowpane.context.events import Event, FileMark, Recorded, SessionContext
from windowpane.context.ids import Actor, SessionId
from windowpane.context.session import SessionState
from windowpane.context.sets import KNOWN_SETS, ChangeMode, ContextSets, SetChange, change_set, replace_all
from windowpane.remarks import get_logger
from windowpane.request.file_marks import read_marks
from windowpane.stores.sessions import Sessions

log = get_logger()

Tell = Callable[[Iterable[Recorded]], None]


class WorkingContext:
    """The working context of a store's sessions."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def sets(self, session_id: SessionId) -> ContextSets:
        """Return a session's sets.

        Raises:
            SessionNotFoundError: no such session.
        """
        return (await self._sessions.state(session_id)).sets

    async def get(self, session_id: SessionId, set_name: str | None = None) -> ContextSets:
        """Return the working context: every set, or one of them, also when it is empty.

        Raises:
            SessionNotFoundError: no such session.
        """
        sets = await self.sets(session_id)
        return sets if set_name is None else {set_name: sets.get(set_name, ())}

    async def set(
        self,
        session_id: SessionId,
        set_name: str,
        items: Sequence[str],
        mode: ChangeMode = "replace",
        *,
        actor: Actor = "user",
        tell: Tell | None = None,
        fence: int | None = None,
    ) -> SetChange:
        """Change one set; for a turn, under a lease with this number.

        Raises:
            SessionNotFoundError: no such session.
            LeaseLostError: another worker has taken the session over.
        """
        allowed = not change_set({}, set_name, items, mode).refused
        marks = await read_marks(items) if allowed and set_name == "files" else {}
        return await self._change(
            session_id, lambda state: change_set(state.sets, set_name, items, mode), set_name, marks, actor, tell, fence
        )

    async def replace(self, session_id: SessionId, sets: Mapping[str, Sequence[str]]) -> SetChange:
        """Make these the sets, all or none of them.

        Raises:
            SessionNotFoundError: no such session.
        """
        change = replace_all(sets)
        marks = await read_marks((change.sets or {}).get("files", ()))
        return await self._change(session_id, lambda _: change, None, marks, "user")

    async def promote(self, session_id: SessionId, paths: Sequence[str]) -> SetChange:
        """Take files that tools were seen to touch into the set `files`.

        Raises:
            SessionNotFoundError: no such session.
        """

        def promoted(state: SessionState) -> SetChange:
            if (unfit := change_set({}, "files", paths, "merge")).refused:
                return unfit
            if strangers := [path for path in paths if path not in state.observed]:
                return SetChange(None, f"Not observed in this session: {', '.join(strangers)}. Nothing was changed.")
            return change_set(state.sets, "files", paths, "merge")

        marks = {} if promoted(await self._sessions.state(session_id)).refused else await read_marks(paths)
        return await self._change(session_id, promoted, "files", marks, "user")

    def of(self, session_id: SessionId, *, actor: Actor, tell: Tell, fence: int | None = None) -> "SetsOf":
        """Return the working context of one session, for one who acts in it, under a lease with this number."""
        return SetsOf(self, session_id, actor, tell, fence)

    async def _change(
        self,
        session_id: SessionId,
        change: Callable[[SessionState], SetChange],
        set_name: str | None,
        marks: Mapping[str, FileMark],
        actor: Actor,
        tell: Tell | None = None,
        fence: int | None = None,
    ) -> SetChange:
        made = SetChange(None, "")

        def decide(state: SessionState) -> list[Event]:
            nonlocal made
            made = change(state)
            return change_events(state, made, set_name, marks, actor)

        changed = await self._sessions.change(session_id, decide, fence=fence)
        if changed.recorded:
            warn_of_unknown(session_id, [set_name] if set_name else changed.state.sets)
        if tell is not None:
            tell(changed.recorded)
        return made


@dataclass(frozen=True, slots=True)
class SetsOf:
    """The working context of one session."""

    context: WorkingContext
    session_id: SessionId
    actor: Actor
    tell: Tell
    fence: int | None = None

    async def set(self, set_name: str, items: Sequence[str], mode: ChangeMode) -> SetChange:
        """Change one set."""
        return await self.context.set(
            self.session_id, set_name, items, mode, actor=self.actor, tell=self.tell, fence=self.fence
        )

    async def sets(self) -> ContextSets:
        """Return all sets."""
        return await self.context.sets(self.session_id)


def change_events(
    state: SessionState, made: SetChange, set_name: str | None, marks: Mapping[str, FileMark], actor: Actor
) -> list[Event]:
    """Return what a change of the sets puts into the log: nothing when it is refused or says nothing new."""
    if made.sets is None or (made.sets == state.sets and _confirmed(state.marks, marks)):
        return []
    return [SessionContext(reason="changed", context=made.sets, set_name=set_name, actor=actor, marks=dict(marks))]


def warn_of_unknown(session_id: SessionId, names: Iterable[str]) -> None:
    """Log the names of unknown sets; one of them may be a typing error."""
    if unknown := sorted(set(names) - set(KNOWN_SETS)):
        log.warning("context.unknown_set", session=session_id, names=unknown)


def _confirmed(known: Mapping[str, FileMark], marks: Mapping[str, FileMark]) -> bool:
    """Tell whether naming files again says nothing new about them."""
    return all(known.get(path) == mark for path, mark in marks.items())
