"""`windowpane token`: make, list and revoke the tokens that callers of the server show."""

import json
from datetime import UTC, datetime
from pathlib import Path

from windowpane.callers import SCOPES, Scope, Token, TokenFile, moment
from windowpane.cli.screen import Screen
from windowpane.errors import InvalidInputError


def create_token(path: Path, *, owner: str, scope: str, expires: str | None, note: str, as_json: bool) -> None:
    """Make a token and print it, which is the only time that it can be seen."""
    now = datetime.now(UTC)
    ends = None if expires is None else moment(expires, now)
    token, secret = TokenFile(path).create(owner, scopes_in(scope), expires_at=ends, note=note)
    screen = Screen(remarks_aside=True)
    if as_json:
        screen.write(json.dumps(_shown(token) | {"token": secret}, indent=2) + "\n")
        return
    screen.write(f"{secret}\n")
    until = f", until {ends:%Y-%m-%d %H:%M} UTC" if ends else ""
    screen.remark(f"Token {token.id} of {owner} may {', '.join(token.scopes)}{until}. It is not shown again.")


def list_tokens(path: Path, *, as_json: bool) -> None:
    """Print every token, without what makes it work."""
    tokens = TokenFile(path).tokens()
    screen = Screen()
    if as_json:
        screen.write(json.dumps([_shown(token) for token in tokens], indent=2, ensure_ascii=False) + "\n")
        return
    now = datetime.now(UTC)
    for token in tokens:
        screen.line(f"{token.id}  {token.owner}  {','.join(token.scopes)}  {_until(token, now)}  {token.note}".rstrip())
    if not tokens:
        screen.line("No tokens yet. `windowpane token create --owner NAME --scope chat` makes one.")


def revoke_token(path: Path, token_id: str) -> None:
    """Make a token useless, at once and for good."""
    token = TokenFile(path).revoke(token_id)
    Screen().line(f"Revoked {token.id} of {token.owner}")


def scopes_in(text: str) -> tuple[Scope, ...]:
    """Return the scopes in a list such as `read,chat`.

    Raises:
        InvalidInputError: one of them is none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in SCOPES]
    if unknown or not names:
        raise InvalidInputError(f"{text!r} are no scopes: write {', '.join(SCOPES)}, with commas between them")
    return tuple(scope for scope in SCOPES if scope in names)


def _until(token: Token, now: datetime) -> str:
    if token.expires_at is None:
        return "no end"
    return f"{'ended' if token.expired(now) else 'until'} {token.expires_at:%Y-%m-%d %H:%M}"


def _shown(token: Token) -> dict[str, object]:
    return {
        "id": token.id,
        "owner": token.owner,
        "scopes": list(token.scopes),
        "note": token.note,
        "created_at": token.created_at.isoformat(),
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
    }
