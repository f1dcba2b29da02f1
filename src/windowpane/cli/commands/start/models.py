"""`windowpane models`: which models can be used now, and what is missing for the others."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.options import Json, new_app
from windowpane.cli.terminal import Screen, counted, styled
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.api.models import ProviderView
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@on_pane
async def models(
    pane: "Pane",
    provider: Annotated[
        str | None, typer.Argument(metavar="PROVIDER", help="List the known models of this provider.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show which models can be used now, and what is missing for the others.

    \b
    Examples:
      windowpane models
      windowpane models openai
      windowpane models --json
    """
    found = await pane.models.providers()
    screen = Screen()
    if provider is not None:
        found = tuple(one for one in found if one.name == provider)
        if not found:
            raise InvalidInputError(f"no provider {provider!r}; `windowpane models` lists them")
    if as_json:
        screen.json(found)
    elif provider is not None:
        _draw_models(screen, found[0])
    else:
        _draw_providers(screen, found)


def _draw_providers(screen: Screen, found: "tuple[ProviderView, ...]") -> None:
    from windowpane.models.local.server import INSTALL, is_installed

    screen.line("Ready", "bold")
    screen.line(f"  {'echo':<14}built in, needs nothing; it says what it was given")
    if is_installed():
        screen.line(f"  {'local':<14}on this machine, needs no key; SmolLM2 with 135 million parameters")
    for one in (one for one in found if one.lacking is None):
        many = f", {counted(len(one.models), 'known model')}" if one.models else ""
        screen.line(f"  {one.name:<14}{_how(one)}{many}")
    screen.line("Not set up", "bold")
    if not is_installed():
        screen.line(styled(f"  {'local':<14}").append(f"needs a package: {INSTALL}", "dim"))
    for one in (one for one in found if one.lacking is not None):
        screen.line(styled(f"  {one.name:<14}").append(f"needs {_what(one)}: {one.advice}", "dim"))


def _draw_models(screen: Screen, one: "ProviderView") -> None:
    screen.line(f"{one.name}: " + (_how(one) if one.lacking is None else f"needs {_what(one)}: {one.advice}"), "bold")
    for name in one.models:
        screen.line(f"  {name}")
    if not one.models:
        screen.line(f"  no names are known; write {one.name}:MODEL")


def _how(one: "ProviderView") -> str:
    key = {"environment": f"key from {one.key_variable}", "kept": "key given to the server", None: "no key needed"}
    return key[one.key_source] + (f", at {one.url}" if one.url else "")


def _what(one: "ProviderView") -> str:
    return f"{'an' if one.lacking == 'address' else 'a'} {one.lacking}"
