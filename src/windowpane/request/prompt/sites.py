"""Tell which site a URL belongs to, and write the URL down so that it stays one line of data.

A URL is read as browsers read it. A site skill is for its host and for every host below it; the longest host wins.
The dot decides: `www.sec.gov` is below `sec.gov`, `evilsec.gov` is not. An IP address has nothing below it.
"""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

SHOWN_URL_CHARACTERS = 2_000
CUT_URL_MARK = " [… cut]"
_LONGEST_HOST = 253
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_AROUND = "".join(map(chr, range(0x21)))
_INSIDE = dict.fromkeys(map(ord, "\t\n\r"))
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:[^ ]", re.IGNORECASE)
_WEB = re.compile(r"https?:", re.IGNORECASE)
_USER = re.compile(r"^([a-z][a-z0-9+.-]*:)?//[^/?#]*@", re.IGNORECASE)
_NEVER_IN_URLS = frozenset('"<>\\^`{|}')


def match_site(url: str, sites: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the host and the text of the skill for a URL, or None when no skill is for it.

    The hosts of `sites` are in lower case and ASCII, without the dot of the root.
    """
    host = host_of(url)
    if host is None:
        return None
    candidates = (host,) if _is_address(host) else _at_and_above(host)
    return next(((candidate, sites[candidate]) for candidate in candidates if candidate in sites), None)


def host_of(url: str) -> str | None:
    """Return the host of a web page in lower case and ASCII, or None when the URL is not that of a web page."""
    cleaned = _cleaned(url)
    if not _WEB.match(cleaned):
        return None
    try:
        parts = urlsplit(cleaned)
        host, _port = parts.hostname or "", parts.port
        return _plain_address(host) if "[" in parts.netloc else _plain_name(host)
    except ValueError:
        return None


def is_address(url: str) -> bool:
    """Tell whether a text can be the address of a page: it has a scheme, and on the web a host."""
    cleaned = _cleaned(url)
    return host_of(cleaned) is not None if _WEB.match(cleaned) else _SCHEME.match(cleaned) is not None


def shown_url(url: str) -> str:
    """Return a URL as one line without white space, control characters or user and password, cut when very long."""
    cleaned = _USER.sub(r"\1//", _cleaned(url))
    # Cut before escaping, so that no escape is cut in two.
    start = cleaned[:SHOWN_URL_CHARACTERS]
    return "".join(map(_escaped, start)) + (CUT_URL_MARK if len(start) < len(cleaned) else "")


def _cleaned(url: str) -> str:
    """Return a URL as browsers take it: trimmed, without line breaks, and with `/` for a backslash on the web."""
    cleaned = url.strip(_AROUND).translate(_INSIDE)
    return cleaned.replace("\\", "/") if _WEB.match(cleaned) else cleaned


def _plain_name(host: str) -> str | None:
    # The codec is slow on absurd lengths, and a name in other letters is never longer than its ASCII form.
    if not host or len(host) > _LONGEST_HOST + 1:
        return None
    plain = host.lower().encode("idna").decode("ascii").removesuffix(".")
    return plain if len(plain) <= _LONGEST_HOST and _HOST.fullmatch(plain) else None


def _plain_address(host: str) -> str:
    return str(ip_address(host))


def _is_address(host: str) -> bool:
    """Tell whether browsers take a host for an IP address: its last label is a number."""
    return ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _at_and_above(host: str) -> list[str]:
    labels = host.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def _escaped(character: str) -> str:
    if character.isprintable() and character != " " and character not in _NEVER_IN_URLS:
        return character
    return quote(character, safe="", errors="replace")
