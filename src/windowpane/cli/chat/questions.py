"""Ask the user of the terminal what a running tool asks: the fields of a form, to open an address, to use the model."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from windowpane.cli.terminal import Screen
from windowpane.context.messages import AnswerAction, ToolQuestion

ACTIONS: dict[str, AnswerAction] = {"a": "accept", "d": "decline", "c": "cancel"}
CHOICE = "[a]ccept, [d]ecline, [c]ancel: "
YES = ("y", "yes", "true", "1")


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What the user answered."""

    action: AnswerAction
    content: Mapping[str, Any] | None = None


AnswerQuestion = Callable[[ToolQuestion], GivenAnswer]
"""Answers one question. Raises `KeyboardInterrupt` to cancel the turn."""

_TITLES = {"form": "asks you", "url": "asks you to open an address", "sampling": "asks to use the model"}


def fill_in_terminal(screen: Screen, question: ToolQuestion) -> GivenAnswer:
    """Show a question and ask for what it needs."""
    screen.line(f"{question.server} {_TITLES[question.kind]}", "bold")
    screen.line(question.message)
    if question.url:
        screen.line(question.url)
    while (action := ACTIONS.get(input(CHOICE).strip().lower()[:1])) is None:
        screen.line("Type a, d or c. Ctrl-C cancels the whole turn.")
    if action != "accept" or question.kind != "form":
        return GivenAnswer(action)
    return GivenAnswer(action, _filled(screen, question.schema))


def decline_alone(screen: Screen, question: ToolQuestion) -> GivenAnswer:
    """Decline when there is no user to ask."""
    screen.remark(f"declined a question of {question.server}: {' '.join(question.message.split())}", "yellow")
    return GivenAnswer("decline")


def _filled(screen: Screen, schema: Mapping[str, Any]) -> dict[str, Any]:
    fields = cast("dict[str, dict[str, Any]]", schema.get("properties") or {})
    required = set(cast("list[str]", schema.get("required") or []))
    filled: dict[str, Any] = {}
    for name, field in fields.items():
        if (value := _value(screen, name, field, required=name in required)) is not None:
            filled[name] = value
    return filled


def _value(screen: Screen, name: str, field: Mapping[str, Any], *, required: bool) -> Any:
    """Return what the user types for a field, None for one that is left out."""
    notes = [str(field.get("description") or ""), _choices(field)]
    if "default" in field:
        notes.append(f"default: {json.dumps(field['default'], ensure_ascii=False)}")
    if not required:
        notes.append("may be empty")
    about = "; ".join(note for note in notes if note)
    while True:
        typed = input(f"{field.get('title') or name}{f' ({about})' if about else ''}: ").strip()
        if not typed:
            if "default" in field:
                return field["default"]
            if not required:
                return None
            screen.line("This field is needed.")
            continue
        try:
            return _typed(typed, field)
        except ValueError:
            screen.line(f"Type a value of the type {field.get('type')}.")


def _choices(field: Mapping[str, Any]) -> str:
    inner = cast("Mapping[str, Any]", field.get("items") or field)
    named = cast("list[dict[str, Any]]", inner.get("oneOf") or inner.get("anyOf") or [])
    values = [*cast("list[Any]", inner.get("enum") or []), *(f"{each['const']}" for each in named if "const" in each)]
    listed = ", ".join(map(str, values))
    return f"several of, separated by commas: {listed}" if listed and field.get("type") == "array" else listed


def _typed(typed: str, field: Mapping[str, Any]) -> Any:
    match field.get("type"):
        case "integer":
            return int(typed)
        case "number":
            return float(typed)
        case "boolean":
            return typed.lower() in YES
        case "array":
            return [part.strip() for part in typed.split(",") if part.strip()]
        case _:
            return typed
