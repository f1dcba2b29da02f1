"""Take secrets out of texts that are shown, logged or kept for people who look for a fault."""

import re
from collections.abc import Iterable, Iterator
from typing import cast
from urllib.parse import unquote

REDACTED = "[redacted]"
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password|credential|signature", re.IGNORECASE)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10})-----.*?(?:-----END (?P=kind)-----|\Z)", re.DOTALL
)
_KEY = re.compile(
    r"""(?x)(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:
      sk-[\w-]{16,}                                   # OpenAI, Anthropic, OpenRouter
    | [srp]k_(?:live|test)_\w{10,}                    # Stripe
    | AIza[\w-]{30,} | ya29\.[\w-]{20,}               # Google
    | gh[pousr]_\w{20,} | github_pat_\w{20,}          # GitHub
    | glpat-[\w-]{16,}                                # GitLab
    | xox[a-z]-[\w-]{10,} | xapp-[\w-]{10,}           # Slack
    | (?:AKIA|ASIA)[A-Z0-9]{16}                       # AWS
    | (?:gsk|hf|npm|r8|pplx|xai|tvly)[-_][\w-]{20,}   # Groq, Hugging Face, npm, Replicate, Perplexity, xAI, Tavily
    )"""
)
# It also finds texts without a dot, which are none: what is found is not looked at again from within.
_WEB_TOKEN = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))eyJ[\w-]{8,}+(?:\.[\w-]{4,}){0,4}\.?")
_BEARER = re.compile(r"(?i)((?:\b|(?<=\\[nrt]))bearer\s{1,4})[\w.~+/=-]{8,}")
_AUTHORIZATION = re.compile(r"""(?i)(authorization\\{0,4}["']?\s{0,4}[:=]\s{0,4}\\{0,4}["']?)[^\n"'\\,;]+""")
_URL_PASSWORD = re.compile(r"""(://[^\s/:@"]{0,200}:)[^\s/"<>]{1,500}@""")
_BEFORE_PASSWORD = re.compile(r"://[^/@:]*:")
_QUERY_NAME = re.compile(r"[?&][^=&]*")
_QUERY_VALUE = re.compile(r"[^&#]*")
_SECRET_NAME = re.compile(r"pass|secret|key|token|sig|auth|credential", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"""(?xi)(
      (?:(?:pass(?:word|wd|phrase|code)|pwd|secret|credential|(?:api|access|private|account)[\ _-]?key)s?|token)
      (?-i:(?![a-z])) [\w-]{0,30} \\{0,4}["']? \s{0,4} (?:=>|[:=]) \s{0,4}
    )(?:
      "(?:\\.|[^"\\\n])+"? | '(?:\\.|[^'\\\n])+'?
    | \\{1,4}["'][^"'\\\n]+
    | (?!\[redacted\]) [^\s"'\\,;&{}\[\]()<>][^\s"\\,;&{}\[\]()<>]*
    )"""
)


def redacted(text: str, secrets: Iterable[str] = (), *, same_length: bool = False) -> str:
    """Return a text without these secrets and without anything that looks like one.

    With `same_length` what is taken out leaves as many characters, so that places in the text stay true.
    """

    def mark(secret: str) -> str:
        if not same_length:
            return REDACTED
        return REDACTED.ljust(len(secret), "*") if len(secret) >= len(REDACTED) else "*" * len(secret)

    def after_name(found: re.Match[str]) -> str:
        return found[1] + mark(found[0][len(found[1]) :])

    for secret in secrets:
        text = text.replace(secret, mark(secret))
    text = _PRIVATE_KEY.sub(lambda found: mark(found[0]), text)
    text = _URL_PASSWORD.sub(lambda found: f"{found[1]}{mark(found[0][len(found[1]) : -1])}@", text)
    text = _KEY.sub(lambda found: mark(found[0]), text)
    text = _WEB_TOKEN.sub(lambda found: mark(found[0]) if "." in found[0][:-1] else found[0], text)
    for named in (_BEARER, _AUTHORIZATION, _ASSIGNED):
        text = named.sub(after_name, text)
    return text


def without_password(url: str) -> str:
    """Return a URL with its password left out, also one that should have been quoted or stands behind the `?`."""
    user, at, rest = url.rpartition("@")
    name = _BEFORE_PASSWORD.search(user) if at else None
    shown = f"{user[: name.end()] if name else user}{'…' if name else ''}{at}{rest}"
    pieces, kept = list[str](), 0
    for start, end in _secret_values(shown):
        pieces.append(shown[kept:start])
        kept = end
    return "…".join((*pieces, shown[kept:]))


def shown_address(url: str) -> str:
    """Return the address of a service without user, password and query, each of which may be secret."""
    return re.sub(r"(?<=://)[^/]*@", "", without_password(url)).partition("?")[0]


def secrets_in(url: str) -> tuple[str, ...]:
    """Return what an address holds that is secret: its password, and values of its query."""
    user, at, _ = url.rpartition("@")
    name = _BEFORE_PASSWORD.search(user) if at else None
    found = [
        *([user[name.end() :]] if name else []),
        *(url[start:end] for start, end in _secret_values(url)),
    ]
    return tuple(secret for each in found for secret in dict.fromkeys((each, unquote(each))) if secret)


def _secret_values(url: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each value of a query whose name says that it is secret. Looks at no character twice."""
    at = 0
    while name := _QUERY_NAME.search(url, at):
        at = name.end()
        if url.startswith("=", at) and _SECRET_NAME.search(name[0]):
            value = cast("re.Match[str]", _QUERY_VALUE.match(url, at + 1))
            yield value.span()
            at = value.end()


def redacted_header(name: str, value: str) -> str:
    """Return the value of a header, or a mark in its place where the header is there to carry a secret."""
    return REDACTED if _SECRET_HEADER.search(name) else redacted(value)
