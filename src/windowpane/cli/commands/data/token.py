"""`windowpane token`: create, list and revoke access tokens."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.options import Json, new_app, where
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.callers import Scope, Token, TokenFile

app = new_app(
    no_args_is_help=True,
    help="""Create, list and revoke access tokens.

    \b
    Examples:
      windowpane token create --owner ann --scope chat --expires 90d
      windowpane token list
    """,
)


@app.command("create")
@where("data", "tokens")
def create_token(
    owner: Annotated[str, typer.Option("--owner", help="The owner whose sessions the token gives access to.")],
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            help="read: view. chat: also start, continue and change sessions. manage: also change agents.",
        ),
    ] = "chat",
    expires: Annotated[
        str | None, typer.Option("--expires", help="A duration such as 12h, 30d or 52w, or a date. Default: never.")
    ] = None,
    note: Annotated[str, typer.Option("--note", help="What the token is for.")] = "",
    as_json: Json = False,
) -> None:
    """Create a token and print it. It is shown only once: only its hash is stored.

    \b
    Examples:
      windowpane token create --owner ann
      windowpane token create --owner ci --scope read --expires 12h --note "nightly report"
    """
    from windowpane.callers import moment

    file = _token_file()
    ends = None if expires is None else moment(expires, datetime.now(UTC))
    token, secret = file.create(owner, _scopes_in(scope), expires_at=ends, note=note)
    screen = Screen(remarks_aside=True)
    if as_json:
        screen.json(_shown(token) | {"token": secret})
        return
    screen.write(f"{secret}\n")
    until = f", until {ends:%Y-%m-%d %H:%M} UTC" if ends else ""
    screen.remark(f"Token {token.id} of {owner} may {', '.join(token.scopes)}{until}. It will not be shown again.")


@app.command("list")
@where("data", "tokens")
def list_tokens(as_json: Json = False) -> None:
    """List tokens with their owner, scopes and expiry.

    \b
    Example:
      windowpane token list
    """
    tokens = _token_file().tokens()
    screen = Screen()
    if as_json:
        screen.json([_shown(token) for token in tokens])
        return
    now = datetime.now(UTC)
    for token in tokens:
        screen.line(f"{token.id}  {token.owner}  {','.join(token.scopes)}  {_until(token, now)}  {token.note}".rstrip())
    if not tokens:
        screen.line("No tokens yet. `windowpane token create --owner NAME --scope chat` creates one.")


@app.command("revoke")
@where("data", "tokens")
def revoke_token(
    token: Annotated[str, typer.Argument(metavar="ID", help="Token id, from `windowpane token list`.")],
) -> None:
    """Revoke a token. Its open connections end within a second, on every worker.

    \b
    Example:
      windowpane token revoke k3v9x2ab
    """
    revoked = _token_file().revoke(token)
    Screen().line(f"Revoked {revoked.id} of {revoked.owner}")


def _token_file() -> "TokenFile":
    from windowpane.callers import TokenFile

    return TokenFile(local_settings("it changes the token file on this machine").tokens_file)


def _scopes_in(text: str) -> "tuple[Scope, ...]":
    """Return the scopes in a list such as `read,chat`."""
    from windowpane.callers import SCOPES

    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in SCOPES]
    if unknown or not names:
        raise InvalidInputError(f"{text!r} is not a list of scopes; available: {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in names)


def _until(token: "Token", now: datetime) -> str:
    if token.expires_at is None:
        return "never expires"
    return f"{'expired' if token.expired(now) else 'until'} {token.expires_at:%Y-%m-%d %H:%M}"


def _shown(token: "Token") -> dict[str, object]:
    return {
        "id": token.id,
        "owner": token.owner,
        "scopes": list(token.scopes),
        "note": token.note,
        "created_at": token.created_at.isoformat(),
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
    }
