import json
from pathlib import Path

from cli.running import windowpane
from windowpane.callers import TokenFile


def test_a_token_is_printed_once_listed_without_its_secret_and_revoked(tmp_path: Path) -> None:
    made = windowpane(tmp_path, "token", "create", "--owner", "ann", "--expires", "30d", "--note", "laptop")
    secret = made.out.strip()
    (token,) = TokenFile(tmp_path / "tokens.json").tokens()
    listed = windowpane(tmp_path, "token", "list")
    as_json = windowpane(tmp_path, "token", "list", "--json")
    revoked = windowpane(tmp_path, "token", "revoke", token.id)
    after = windowpane(tmp_path, "token", "list")

    ends = f"{token.expires_at:%Y-%m-%d %H:%M}"
    assert made.code == 0
    assert made.err == f"Token {token.id} of ann may read, chat, until {ends} UTC. It will not be shown again.\n"
    assert listed.out == f"{token.id}  ann  read,chat  until {ends}  laptop\n"
    assert [(entry["id"], entry["owner"], entry["scopes"]) for entry in json.loads(as_json.out)] == [
        (token.id, "ann", ["read", "chat"])
    ]
    assert secret not in listed.out + as_json.out
    assert revoked.out == f"Revoked {token.id} of ann\n"
    assert after.out == "No tokens yet. `windowpane token create --owner NAME --scope chat` creates one.\n"


def test_what_cannot_be_done_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    scope = windowpane(tmp_path, "token", "create", "--owner", "ann", "--scope", "read,everything")
    expires = windowpane(tmp_path, "token", "create", "--owner", "ann", "--expires", "soon")
    revoke = windowpane(tmp_path, "token", "revoke", "nothing")
    serve = windowpane(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")

    assert [done.code for done in (scope, expires, revoke, serve)] == [1, 1, 1, 1]
    assert scope.err == "error: 'read,everything' is not a list of scopes; available: read, chat, manage\n"
    assert expires.err == (
        "error: 'soon' is not a time: write an age such as 12h, 30d or 52w, or a date such as 2030-01-31\n"
    )
    assert revoke.err == "error: no token 'nothing'; `windowpane token list` shows them all\n"
    assert serve.err == (
        "error: host: others can reach '0.0.0.0', and there is no token yet that keeps them out; make one with "
        "`windowpane token create --owner NAME --scope manage`, or use 127.0.0.1\n"
    )
