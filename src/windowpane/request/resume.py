"""Remind the model of what a session was working on, and ask it to keep that written down.

The reminder is one block of the request, made when a session is taken up again after it was left alone or after the
process restarted. It is made of what users and models wrote, so each thing stays on its line.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from windowpane.context.session import SessionState
from windowpane.context.sets import ContextSets
from windowpane.request.file_marks import FileState

RESUME_AFTER_S = 30 * 60.0
"""How long a session is left alone before its next message takes it up again."""

WORKING_CONTEXT_TEXT = """# Working context

You MUST note what you work on: `set_relevant_context("files", ["/absolute/path"], "merge")` adds, \
`get_relevant_context()` reads after a pause. Note it when you:
- read or edit a file central to the task;
- start on a design, spec or notes;
- work with endpoints, ports or applets;
- are about to finish.
Do not minimise these calls: people see it change as you work."""
"""The section of the system block that asks the model to keep its working context."""


def is_taken_up_again(state: SessionState, *, now: datetime, started_at: datetime, resume_after_s: float) -> bool:
    """Tell whether a message that comes now resumes the session: there is something to remember, and a pause behind it.

    The pause is one of the conversation: a change from outside, such as a page that is opened, does not end it.
    """
    last = state.recent[-1].at if state.recent else state.created_at
    if last is None or not (state.sets or state.settings.environment_hint or state.settings.current_intent):
        return False
    return last < started_at or now - last >= timedelta(seconds=resume_after_s)


def resume_text(
    sets: ContextSets, environment_hint: str | None, files: Mapping[str, FileState], intent: str | None = None
) -> str:
    """Return the reminder, or nothing when nothing is stored. A file of unknown state is taken to exist."""
    return "\n\n".join(_parts(sets, environment_hint or "", files, intent or ""))


def _parts(sets: ContextSets, environment_hint: str, files: Mapping[str, FileState], intent: str) -> Iterator[str]:
    if environment_hint.strip():
        yield f"Environment: {on_one_line(environment_hint)}"
    if intent.strip():
        yield f"Current intent: {on_one_line(intent)}"
    yield from _file_parts(sets.get("files", ()), files)
    if applet := sets.get("applet"):
        slug, *params = map(on_one_line, applet)
        yield f"Last applet: {slug} ({', '.join(params)})" if params else f"Last applet: {slug}"
    for name, items in sets.items():
        if name not in ("files", "applet") and items:
            yield f"{on_one_line(name)}: {', '.join(map(on_one_line, items))}"


def _file_parts(paths: Sequence[str], files: Mapping[str, FileState]) -> Iterator[str]:
    missing = [path for path in paths if files.get(path) == "missing"]
    present = [path for path in paths if path not in missing]
    changed = [path for path in paths if files.get(path) == "changed"]
    if present:
        yield _listed("Relevant files:", present)
    if missing:
        yield _listed(f"({len(missing)} files not found)", missing)
    if changed:
        yield _listed("Changed since they were noted:", changed)


def _listed(heading: str, paths: Sequence[str]) -> str:
    return "\n".join((heading, *(f"- {on_one_line(path)}" for path in paths)))


def on_one_line(text: str) -> str:
    """Return a text with everything that could end its line, or change how it is read, written as an escape."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
