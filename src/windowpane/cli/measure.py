"""Labelled questions from a file, and how a measure is printed. `eval` and `tune` share them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.context_tests import ContextTest
    from windowpane.api.evaluation import Measure

DOMAINS = {"text": "rules and references", "tool": "tools"}


def labels_in(file: Path | None) -> "tuple[ContextTest, ...]":
    """Return the labelled questions of a file; none without a file.

    Raises:
        InvalidInputError: the file cannot be read.
    """
    if file is None:
        return ()
    from windowpane.insight.evaluate import read_labels

    return tuple(read_labels(file))


def draw_measure(screen: Screen, name: str, measure: "Measure") -> None:
    """Print recall, precision and F1 in one line."""
    figures: Sequence[tuple[str, float | None]] = (
        ("recall", measure.recall),
        ("precision", measure.precision),
        ("F1", measure.f1),
    )
    shares = ", ".join(f"{title} {'–' if share is None else f'{share:.3f}'}" for title, share in figures)
    screen.line(f"{name}: {shares}, {measure.mean_selected or 0:.2f} selected on average")
