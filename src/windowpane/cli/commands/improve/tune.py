"""`windowpane tune`: better search settings for an agent."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.measure import DOMAINS, draw_measure, labels_in
from windowpane.cli.options import AgentArgument, Json, Labels, new_app
from windowpane.cli.terminal import Screen, confirmed, counted

if TYPE_CHECKING:
    from windowpane.api.evaluation import Proposal
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@on_pane
async def tune(
    pane: "Pane",
    agent: AgentArgument,
    labels: Labels = None,
    write: Annotated[bool, typer.Option("--write", help="Write better settings to agent.yaml, after asking.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Find better search settings and check them on held-out questions.

    \b
    Examples:
      windowpane tune guide --labels questions.yaml
      windowpane tune guide --write
    """
    proposals = await pane.agents.tune(agent, labels_in(labels))
    screen = Screen(remarks_aside=as_json)
    if as_json:
        screen.json(proposals)
    else:
        for proposal in proposals:
            draw_proposal(screen, proposal)
    better = [proposal for proposal in proposals if proposal.better]
    if not write or not better:
        hint = " --write writes these settings to agent.yaml, after asking." if better else ""
        screen.remark(f"Nothing was changed.{hint}")
        return
    if not yes and not confirmed(f"Write these settings to agent.yaml of {agent}?"):
        screen.remark("Nothing was changed.")
        raise typer.Exit(1)
    changed = await pane.agents.change_search(agent, {proposal.domain: proposal.changes for proposal in better})
    screen.remark(f"Changed {changed.file} of {agent}.")


def draw_proposal(screen: Screen, found: "Proposal") -> None:
    """Print the measures now and with tuned settings, on held-out questions."""
    screen.line(
        f"{DOMAINS[found.domain]}, {counted(found.before.questions, 'question')} in {found.folds} groups:", "bold"
    )
    draw_measure(screen, "  now", found.before)
    draw_measure(screen, "  tuned, on held-out questions", found.after)
    if found.better:
        screen.line(f"  proposed: {', '.join(f'{name}: {value}' for name, value in found.changes.items())}", "green")
    else:
        screen.line("  no clear improvement was found; keep the settings")
