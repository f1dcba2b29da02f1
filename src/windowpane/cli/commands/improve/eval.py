"""`windowpane eval`: how well an agent's selection works."""

from typing import TYPE_CHECKING

from windowpane.cli.connect import on_pane
from windowpane.cli.measure import DOMAINS, draw_measure, labels_in
from windowpane.cli.options import AgentArgument, Json, Labels, new_app
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.evaluation import Evaluation
    from windowpane.api.pane import Pane

app = new_app()

BAR = 40


@app.command("eval")
@on_pane
async def evaluate(pane: "Pane", agent: AgentArgument, labels: Labels = None, as_json: Json = False) -> None:
    """Measure how well an agent's selection works. Prints recall, precision, F1 and the calibration of scores.

    Without --labels, an item counts as needed if the answer used it or if it was added by hand right after.

    \b
    Examples:
      windowpane eval guide
      windowpane eval guide --labels questions.yaml
    """
    found = await pane.agents.evaluate(agent, labels_in(labels))
    screen = Screen()
    screen.json(found) if as_json else draw_evaluation(screen, found)


def draw_evaluation(screen: Screen, found: "Evaluation") -> None:
    """Print the measures, the calibration of scores, and some of the mistakes."""
    draw_measure(screen, counted(found.whole.questions, "question"), found.whole)
    for domain, measure in found.by_domain.items():
        if len(found.by_domain) > 1:
            draw_measure(screen, DOMAINS[domain], measure)
    screen.line("Needed, by score (of items with a score of 0.4, about 40% should be needed):", "bold")
    for step in found.calibration:
        share = step.share or 0.0
        bar = "█" * round(share * BAR)
        said = f"{share:4.0%} of {step.candidates:,}" if step.candidates else "–"
        screen.line(f"  {step.low:.1f}–{step.low + 0.1:.1f} {bar:<{BAR}} {said}")
    for wrong in found.wrong[:10]:
        parts = [f"missed {', '.join(map(str, wrong.missed))}"] if wrong.missed else []
        parts += [f"not needed {', '.join(map(str, wrong.needless))}"] if wrong.needless else []
        screen.line(f"  ✗ {wrong.name}: {'; '.join(parts)}", "dim")
