"""What an import did: which sessions, how many calls, and what could not be read."""

from dataclasses import dataclass, field

from windowpane.context.calls import ImportSource, NotTold
from windowpane.context.ids import SessionId
from windowpane.xray.importing.files import ReadFile, Unread
from windowpane.xray.importing.told import ToldSession
from windowpane.xray.importing.writer import ImportedSession


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session of an import."""

    id: SessionId
    source: ImportSource
    calls: int
    known: int
    recorded: int
    not_told: tuple[NotTold, ...]


@dataclass(slots=True)
class ImportReport:
    """What an import did so far."""

    files: int = 0
    sessions: list[SessionLine] = field(default_factory=list[SessionLine])
    unread: list[Unread] = field(default_factory=list[Unread])
    others: int = 0
    """How many files of folders are none that is known."""

    @property
    def calls(self) -> int:
        """Return how many calls are new."""
        return sum(line.calls for line in self.sessions)

    @property
    def known(self) -> int:
        """Return how many calls were there before."""
        return sum(line.known for line in self.sessions)

    @property
    def recorded(self) -> int:
        """Return how many calls the recording proxy saw, so that they were not imported."""
        return sum(line.recorded for line in self.sessions)

    def add_file(self, read: ReadFile, *, named: bool) -> None:
        """Count a file. `named` tells that it was asked for, and not found in a folder."""
        self.files += bool(read.format)
        if read.is_other and not named:
            self.others += 1
        else:
            self.unread += read.unread

    def add_session(self, told: ToldSession, imported: ImportedSession) -> None:
        """Count a session."""
        line = SessionLine(imported.id, told.source, imported.calls, imported.known, imported.recorded, told.not_told)
        self.sessions.append(line)

    @property
    def unknown(self) -> bool:
        """Tell whether a file that was asked for is no log, or could not be opened."""
        return any(not unread.line for unread in self.unread)
