from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.callers import SCOPES, Caller, Scope, TokenFile, moment, with_lesser
from windowpane.errors import InvalidInputError, TokenNotFoundError, TokensUnreadableError

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


def test_a_token_tells_whose_it_is_and_what_it_allows(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")

    token, secret = tokens.create("ann", ["chat"], note="laptop")

    assert tokens.caller(secret) == Caller("ann", frozenset(("read", "chat")), token.id)
    assert (token.owner, token.scopes, token.note, token.expires_at) == ("ann", ("read", "chat"), "laptop", None)


def test_only_the_hash_of_a_token_is_kept_and_nobody_else_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"

    token, secret = TokenFile(path).create("ann", ["read"])

    kept = path.read_text()
    assert secret not in kept
    assert secret.split("_", 2)[2] not in kept
    assert json.loads(kept)["tokens"][0]["hash"] == token.hash
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "shown", ["", "wp_", "ann", "wp_00000000_" + "A" * 43, "wp_\ud800", "wp_aaaaaaaa_" + "A" * 44, "\x00"]
)
def test_what_is_no_token_is_nobody(tmp_path: Path, shown: str) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    tokens.create("ann", ["manage"])

    assert tokens.caller(shown) is None


def test_a_token_with_another_secret_is_nobody(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    _, secret = tokens.create("ann", ["manage"])
    _, other = tokens.create("bob", ["manage"])

    assert tokens.caller(secret[:12] + other[12:]) is None


def test_a_token_ends_when_its_time_is_over(tmp_path: Path) -> None:
    now = NOW
    tokens = TokenFile(tmp_path / "tokens.json", clock=lambda: now)
    token, secret = tokens.create("ann", ["read"], expires_at=NOW + timedelta(hours=1))

    before = tokens.caller(secret)
    now = NOW + timedelta(hours=1)

    assert before == Caller("ann", frozenset(("read",)), token.id)
    assert (tokens.caller(secret), tokens.holds(token.id), tokens.usable()) == (None, False, ())
    assert tokens.tokens() == (token,)


def test_what_one_process_changes_counts_for_every_other_at_once(tmp_path: Path) -> None:
    one, other = TokenFile(tmp_path / "tokens.json"), TokenFile(tmp_path / "tokens.json")
    assert other.tokens() == ()

    token, secret = one.create("ann", ["read"])
    known = other.caller(secret)
    revoked = one.revoke(token.id)

    assert known == Caller("ann", frozenset(("read",)), token.id)
    assert revoked == token
    assert (other.caller(secret), other.holds(token.id)) == (None, False)


def test_processes_that_make_tokens_at_once_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    code = (
        "import sys; from pathlib import Path; from windowpane.callers import TokenFile\n"
        "for n in range(20): TokenFile(Path(sys.argv[1])).create(f'{sys.argv[2]} {n}', ['read'])"
    )

    running = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("ann", "bob", "cid")]
    ended = [process.wait(120) for process in running]

    assert ended == [0, 0, 0]
    owners = sorted(token.owner for token in TokenFile(path).tokens())
    assert owners == sorted(f"{name} {n}" for name in ("ann", "bob", "cid") for n in range(20))


def test_a_token_that_is_not_there_cannot_be_revoked(tmp_path: Path) -> None:
    with pytest.raises(TokenNotFoundError) as missing:
        TokenFile(tmp_path / "tokens.json").revoke("nothing")

    assert str(missing.value) == "no token 'nothing'; `windowpane token list` shows them all"


@pytest.mark.parametrize("body", ["", "{", '{"tokens": [{}]}', "[]"])
def test_a_damaged_file_is_a_clear_error_and_lets_nobody_in(tmp_path: Path, body: str) -> None:
    path = tmp_path / "tokens.json"
    tokens = TokenFile(path)
    _, secret = tokens.create("ann", ["read"])
    assert tokens.caller(secret)

    path.write_text(body)

    for ask in (tokens.tokens, tokens.usable, lambda: tokens.caller(secret), lambda: tokens.create("bob", ["read"])):
        with pytest.raises(TokensUnreadableError, match="cannot be used"):
            ask()
    assert path.read_text() == body


@pytest.mark.parametrize("owner", ["", " ann", "ann ", "a\nb", "a\x00", "x" * 101])
def test_an_owner_that_cannot_be_told_apart_on_sight_is_refused(tmp_path: Path, owner: str) -> None:
    with pytest.raises(InvalidInputError, match="an owner's name"):
        TokenFile(tmp_path / "tokens.json").create(owner, ["read"])


def test_a_token_without_a_scope_or_with_a_past_end_is_refused(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json", clock=lambda: NOW)

    with pytest.raises(InvalidInputError, match="a token needs a scope: read, chat, manage"):
        tokens.create("ann", [])
    with pytest.raises(InvalidInputError, match="cannot expire in the past"):
        tokens.create("ann", ["read"], expires_at=NOW)
    assert not (tmp_path / "tokens.json").exists()


@given(st.lists(st.sampled_from(SCOPES), min_size=1))
def test_a_scope_includes_every_lesser_one_and_no_greater_one(scopes: list[Scope]) -> None:
    most = max(SCOPES.index(scope) for scope in scopes)

    assert with_lesser(scopes) == SCOPES[: most + 1]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", NOW + timedelta(minutes=90)),
        ("12h", NOW + timedelta(hours=12)),
        ("30d", NOW + timedelta(days=30)),
        ("52w", NOW + timedelta(weeks=52)),
        ("2031-02-01", datetime(2031, 2, 1, tzinfo=UTC)),
        ("2031-02-01T10:00:00+02:00", datetime(2031, 2, 1, 8, tzinfo=UTC)),
    ],
)
def test_an_end_is_an_age_or_a_date(text: str, at: datetime) -> None:
    assert moment(text, NOW) == at


@pytest.mark.parametrize("text", ["", "soon", "30", "-1d", "1.5h", "999999d", "2031-13-01"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a time"):
        moment(text, NOW)
