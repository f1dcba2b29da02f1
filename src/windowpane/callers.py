"""Callers: who may come in, as whom, and what they may do.

A caller is an owner and scopes. Sessions belong to owners; scopes say what may be done, each more than the one before:
`read` looks, `chat` also begins, continues, changes and deletes the owner's sessions, `manage` also changes agents and
sees how the server is doing. Callers prove who they are with a token. Tokens stand in one file, by their hash: one who
reads the file can tell whose tokens there are and use none of them. The file is replaced whole, so every process that
reads it sees the tokens before a change or those after it, and a change counts from the next request on.
"""

import fcntl
import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from windowpane.errors import InvalidInputError, InvalidSettingError, TokenNotFoundError, TokensUnreadableError
from windowpane.json_codec import JsonCodec

Scope = Literal["read", "chat", "manage"]
SCOPES: tuple[Scope, ...] = ("read", "chat", "manage")
"""What a caller may do, the least first. Each includes those before it."""

LOCAL_OWNER = "local"
"""Whose sessions those are that were begun without a token."""

_OWNER = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,98}[^\s\x00-\x1f\x7f])?")
_TOKEN = re.compile(r"wp_([a-z0-9]{8})_([A-Za-z0-9_-]{43})")
_ID_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_AGE = re.compile(r"(\d{1,5})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Caller:
    """A user or program that sends requests. `token` is the id of the token that was shown; None: none was needed."""

    owner: str
    scopes: frozenset[Scope]
    token: str | None = None

    def may(self, scope: Scope) -> bool:
        """Tell whether the caller may do what needs this scope."""
        return scope in self.scopes


LOCAL = Caller(LOCAL_OWNER, frozenset(SCOPES))
"""The user of this machine, who needs no token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as it is kept. The secret itself is kept nowhere."""

    id: str
    hash: str
    owner: str
    scopes: tuple[Scope, ...]
    note: str = ""
    created_at: datetime
    expires_at: datetime | None = None

    def expired(self, now: datetime) -> bool:
        """Tell whether the token's time is over."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the file holds."""

    tokens: tuple[Token, ...] = ()


_KEPT = JsonCodec(_Kept)


class TokenFile:
    """The tokens of an installation. Any number of processes may read and change them."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.path = path
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def tokens(self) -> tuple[Token, ...]:
        """Return every token, also those whose time is over, the oldest first.

        Raises:
            TokensUnreadableError: the file is damaged or may not be read.
        """
        try:
            # A replaced file is another file, so it is told apart even within one tick of the clock.
            found = self.path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._seen:
                kept = _KEPT.adapter.validate_json(self.path.read_bytes())
                self._tokens, self._seen = {token.id: token for token in kept.tokens}, stamp
        except FileNotFoundError:
            self._tokens, self._seen = {}, None
        except OSError as error:
            raise TokensUnreadableError(str(self.path), error.strerror or str(error)) from None
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise TokensUnreadableError(str(self.path), first["msg"]) from None
        return tuple(self._tokens.values())

    def usable(self) -> tuple[Token, ...]:
        """Return the tokens whose time is not over."""
        now = self._clock()
        return tuple(token for token in self.tokens() if not token.expired(now))

    def caller(self, shown: str) -> Caller | None:
        """Return whose token this is, or None when it is unknown or revoked."""
        parts = _TOKEN.fullmatch(shown)
        token = self._find(parts[1]) if parts else None
        right = hmac.compare_digest(_hash(shown), token.hash if token else _NO_HASH)
        if token is None or not right or token.expired(self._clock()):
            return None
        return Caller(token.owner, frozenset(token.scopes), token.id)

    def holds(self, token_id: str) -> bool:
        """Tell whether a token can still be used."""
        token = self._find(token_id)
        return token is not None and not token.expired(self._clock())

    def create(
        self, owner: str, scopes: Sequence[Scope], *, expires_at: datetime | None = None, note: str = ""
    ) -> tuple[Token, str]:
        """Keep a new token and return it with its secret, which cannot be had again.

        Raises:
            InvalidInputError: the owner's name cannot be used, there is no scope, or the time is over already.
        """
        now = self._clock()
        if not _OWNER.fullmatch(owner):
            raise InvalidInputError("an owner's name has 1 to 100 characters, on one line, without spaces around it")
        if not scopes:
            raise InvalidInputError(f"a token needs a scope: {', '.join(SCOPES)}")
        if expires_at is not None and expires_at <= now:
            raise InvalidInputError("a token cannot expire in the past")
        token_id = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(8))
        secret = f"wp_{token_id}_{secrets.token_urlsafe(32)}"
        token = Token(
            id=token_id,
            hash=_hash(secret),
            owner=owner,
            scopes=with_lesser(scopes),
            note=note,
            created_at=now,
            expires_at=expires_at,
        )
        with self._changing() as kept:
            kept.append(token)
        return token, secret

    def revoke(self, token_id: str) -> Token:
        """Forget a token, so that it cannot be used any more, and return it.

        Raises:
            TokenNotFoundError: there is no such token.
        """
        with self._changing() as kept:
            found = next((token for token in kept if token.id == token_id), None)
            if found is None:
                raise TokenNotFoundError(token_id)
            kept.remove(found)
        return found

    def _find(self, token_id: str) -> Token | None:
        self.tokens()
        return self._tokens.get(token_id)

    @contextmanager
    def _changing(self) -> Generator[list[Token]]:
        """Give the tokens to be changed, one process at a time, and replace the file when all went well."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.with_name(self.path.name + "-lock").open("ab") as turnstile:
                fcntl.flock(turnstile, fcntl.LOCK_EX)
                kept = list(self.tokens())
                yield kept
                _replace(self.path, _KEPT.adapter.dump_json(_Kept(tuple(kept)), indent=2) + b"\n")
        except OSError as error:
            raise TokensUnreadableError(str(self.path), error.strerror or str(error)) from None


def token_needed_at(host: str, tokens: TokenFile, required: bool | None) -> bool:
    """Tell whether callers need a token at an address. `required` is what the settings say; None: where others come.

    Raises:
        InvalidSettingError: others can reach the address, and there is no token or none is to be needed.
        TokensUnreadableError: the tokens cannot be read.
    """
    if is_loopback(host):
        return bool(required)
    if required is False:
        raise InvalidSettingError(
            "require_token",
            f"others can reach {host!r}, so every caller needs a token; leave it out or set it to true",
        )
    if not tokens.usable():
        raise InvalidSettingError(
            "host",
            f"others can reach {host!r}, and there is no token yet that keeps them out; make one with "
            "`windowpane token create --owner NAME --scope manage`, or use 127.0.0.1",
        )
    return True


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def with_lesser(scopes: Sequence[Scope]) -> tuple[Scope, ...]:
    """Return scopes with everything that they include."""
    return SCOPES[: 1 + max(map(SCOPES.index, scopes))]


def moment(text: str, now: datetime) -> datetime:
    """Return when something ends that is given as an age (`30d`, `12h`) or as a date.

    Raises:
        InvalidInputError: it is neither.
    """
    if age := _AGE.fullmatch(text):
        return now + timedelta(**{_UNITS[age[2]]: int(age[1])})
    with suppress(ValueError):
        at = datetime.fromisoformat(text)
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    raise InvalidInputError(
        f"{text!r} is not a time: write an age such as 12h, 30d or 52w, or a date such as 2030-01-31"
    )


def _hash(secret: str) -> str:
    # The secret is 256 random bits: there is nothing to guess, so nothing slower than this is needed.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


_NO_HASH = "0" * 64


def _replace(path: Path, body: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
