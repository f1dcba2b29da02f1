"""Rules of other programs: where each keeps them, and when it sends which.

| where | always | agent | manual |
|---|---|---|---|
| `.cursor/rules`, `.continue/rules` | `alwaysApply` | globs or a description | neither |
| `.windsurf/rules` | `trigger: always_on` | `glob`, `model_decision` | `manual` |
| `.github/instructions` | `applyTo: '**'` | other patterns | none |
| `.clinerules`, `.claude/rules` | | with `paths` | |
| `.kiro/steering` | | `inclusion: fileMatch` | `inclusion: manual` |
| `.roo/rules`, `.roorules` | | `.roo/rules-MODE`, `.roorules-MODE` | |
| `.amazonq/rules`, `.junie` | all | | |
| commands, workflows and prompts | | | all: a user calls for them |

What is not stated is as the program itself has it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from windowpane.context.items import IncludeMode

MARKDOWN = (".md", ".mdc", ".txt")


@dataclass(frozen=True, slots=True)
class RuleMode:
    """How a rule is included, why, and what its front matter says that it is about."""

    include: IncludeMode
    why: str
    about: str = ""


Front = Mapping[str, str]
Decide = Callable[[Front, PurePath], RuleMode]


def mode_of(front: Front, path: PurePath) -> RuleMode | str | None:
    """Return how a rule of a file is included; a text: why it is no rule; None: it is no file of a program's rules."""
    parts = path.parent.parts
    for folder, reason in NO_RULES.items():
        if _within(folder, parts):
            return reason
    if decide := next((decide for name, decide in FILES.items() if _is_named(name, path.name)), None):
        return decide(front, path)
    if path.suffix.lower() not in MARKDOWN:
        return None
    if path.suffix == ".mdc":
        return _applied(front, path)
    return next((decide(front, path) for folder, decide in FOLDERS.items() if _within(folder, parts)), None)


def _within(folder: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Tell whether folders stand one in the other somewhere on a path. One that ends with `*` is a beginning."""
    size = len(folder)
    return any(
        all(_is_named(name, part) for name, part in zip(folder, parts[at : at + size], strict=True))
        for at in range(len(parts) - size + 1)
    )


def _is_named(name: str, part: str) -> bool:
    return part.startswith(name[:-1]) if name.endswith("*") else part == name


def _applied(front: Front, path: PurePath) -> RuleMode:
    """As Cursor has it."""
    globs, about = front.get("globs", ""), front.get("description", "")
    if front.get("alwaysApply", "").lower() == "true":
        return RuleMode("always", "alwaysApply is true", _about(about, globs))
    if globs:
        return RuleMode("agent", f"it is for files like {globs}", _about(about, globs))
    if about:
        return RuleMode("agent", "it is described, for the model to choose", about)
    return RuleMode("manual", "it has neither alwaysApply, globs nor a description")


def _continued(front: Front, path: PurePath) -> RuleMode:
    """As Continue has it: without globs and description a rule is always sent."""
    if "alwaysApply" not in front and not front.get("globs") and not front.get("description"):
        return RuleMode("always", "Continue always sends it", front.get("name", ""))
    return _applied(front, path)


def _triggered(front: Front, path: PurePath) -> RuleMode:
    """As Windsurf has it."""
    globs, about, trigger = front.get("globs", ""), front.get("description", ""), front.get("trigger", "")
    modes: dict[str, tuple[IncludeMode, str]] = {
        "always_on": ("always", "its trigger is always_on"),
        "glob": ("agent", f"it is for files like {globs}"),
        "model_decision": ("agent", "it is described, for the model to choose"),
        "manual": ("manual", "its trigger is manual"),
    }
    include, why = modes.get(trigger, ("manual", "it has no trigger"))
    return RuleMode(include, why, _about(about, globs))


def _applies_to(front: Front, path: PurePath) -> RuleMode:
    """As Copilot has it."""
    pattern, about = front.get("applyTo", ""), front.get("description", "")
    if pattern in ("**", "**/*", "*"):
        return RuleMode("always", "it applies to every file", about)
    if pattern:
        return RuleMode("agent", f"it is for files like {pattern}", _about(about, pattern))
    return RuleMode("manual", "it has no applyTo", about)


def _with_paths(front: Front, path: PurePath) -> RuleMode:
    """As Cline and Claude Code have it."""
    if paths := front.get("paths", ""):
        return RuleMode("agent", f"it is for files like {paths}", _about(front.get("description", ""), paths))
    return RuleMode("always", "it is always sent there", front.get("description", ""))


def _steering(front: Front, path: PurePath) -> RuleMode:
    """As Kiro has it."""
    about, pattern = front.get("description", ""), front.get("fileMatchPattern", "")
    match front.get("inclusion", "always"):
        case "fileMatch":
            return RuleMode("agent", f"it is for files like {pattern}", _about(about, pattern))
        case "auto":
            return RuleMode("agent", "it is described, for the model to choose", about)
        case "manual":
            return RuleMode("manual", "its inclusion is manual", about)
        case _:
            return RuleMode("always", "it is always sent there", about)


def _roo(front: Front, path: PurePath) -> RuleMode:
    """As Roo Code has it: beside `rules` there is a folder, or a file, for each mode."""
    names = (*path.parent.parts, path.name)
    mode = next((name.partition("-")[2] for name in names if name.startswith(("rules-", ".roorules-"))), "")
    if mode:
        return RuleMode("agent", f"it is for the mode {mode}", f"For the mode {mode}")
    return RuleMode("always", "Roo Code always sends it")


def _always(front: Front, path: PurePath) -> RuleMode:
    return RuleMode("always", "it is always sent there", front.get("description", ""))


def _called_for(front: Front, path: PurePath) -> RuleMode:
    return RuleMode("manual", "there a user calls for it by its name", front.get("description", ""))


def _about(about: str, patterns: str) -> str:
    return ". ".join(part for part in (about.rstrip("."), f"Applies to {patterns}" if patterns else "") if part)


A_HOOK = "a hook runs a program, which Windowpane does not; a tool server can offer it"
AN_AGENT = "it is an agent of its own: `windowpane init NAME`, and its text as prompts/core.md"

NO_RULES: Mapping[tuple[str, ...], str] = {
    (".clinerules", "hooks"): A_HOOK,
    (".claude", "hooks"): A_HOOK,
    (".claude", "agents"): AN_AGENT,
    (".github", "agents"): AN_AGENT,
    (".github", "chatmodes"): AN_AGENT,
}
"""What is reported and not brought in."""

FOLDERS: Mapping[tuple[str, ...], Decide] = {
    (".clinerules", "workflows"): _called_for,
    (".clinerules",): _with_paths,
    (".claude", "commands"): _called_for,
    (".claude", "rules"): _with_paths,
    (".cursor", "commands"): _called_for,
    (".cursor", "rules"): _applied,
    (".windsurf", "workflows"): _called_for,
    (".windsurf", "rules"): _triggered,
    (".github", "instructions"): _applies_to,
    (".github", "prompts"): _called_for,
    (".roo", "commands"): _called_for,
    (".roo", "rules*"): _roo,
    (".continue", "prompts"): _called_for,
    (".continue", "rules"): _continued,
    (".kiro", "steering"): _steering,
    (".junie",): _always,
    (".amazonq", "rules"): _always,
}
"""The folders, the nearer ones before those that they stand in."""

FILES: Mapping[str, Decide] = {".clinerules": _with_paths, ".roorules*": _roo}
