"""Find what of a text can be checked letter by letter: paths, addresses, amounts, dates, identifiers, names."""

import re
from functools import lru_cache

LONGEST_COMMAND = 140


def hard_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Return what of a text can be checked letter by letter, each with its kind, such as `date`."""
    return tuple((kind, text[start:end]) for kind, start, end in hard_spans(text))


def command(line: str) -> str:
    """Return the command that a line consists of, or nothing."""
    line = line.strip()
    if line.startswith("$ "):
        return line[2:].strip()
    first, _, rest = line.partition(" ")
    if not rest or line.endswith((".", "?", "!", ":", ",")) or len(line) > LONGEST_COMMAND:
        return ""
    clear = first in _CLEAR_COMMANDS and len(rest.split()) <= _MOST_WORDS
    return line if clear or (first in _CLEAR_COMMANDS | _COMMAND_WORDS and _OPTION.search(line)) else ""


@lru_cache(maxsize=4096)
def hard_spans(text: str) -> tuple[tuple[str, int, int], ...]:
    """Return kind, start and end of everything hard in a text; what an earlier kind took is not taken again."""
    if command(text):
        return (("code", 0, len(text)),)
    taken = bytearray(len(text))
    parts: list[tuple[str, int, int]] = []
    for kind, pattern in _KINDS.items():
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(taken[start:end]) or (kind == "name" and match[0].lower() in _NOT_NAMES):
                continue
            taken[start:end] = b"\x01" * (end - start)
            parts.append((kind, start, end))
    return tuple(sorted(parts, key=lambda part: part[1]))


_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_UNIT = (
    r"(?:%|°[CF]?|[kKMGTP]i?[Bb](?:/s|ps)?\b|(?:bytes?|bits?|tokens?|char(?:acter)?s?|lines?|rows?|records?|messages?|files?"
    r"|requests?|users?|people|persons?|items?|pages?|words?|times|x|ms|µs|ns|s|sec(?:ond)?s?|min(?:ute)?s?|h|hrs?|hours?"
    r"|days?|weeks?|months?|years?|[kcm]?m|miles?|km/h|mph|[km]?g|lbs?|pounds?|oz|m?l|lit(?:re|er)s?|euros?|dollars?|cents?"
    r"|EUR|USD|GBP|CHF|JPY|px|pt|dpi|fps|[kMG]?Hz|[kM]?W|kWh|[mk]?V|m?A|cores?|threads?|workers?|replicas?|nodes?|instances?"
    r"|degrees?|points?|per ?cent|thousand|million|billion)\b(?:/\w+| per \w+)?)"
)
# Names have a longest length here: one without is tried from each of its letters to its end.
_NUMBER = r"(?<![\w.])[-+]?\d+(?:[.,']\d{3}){0,8}(?:[.,]\d+)?"
CODE = re.compile(r"`[^`\n]+`")
_KINDS: dict[str, re.Pattern[str]] = {
    "code": CODE,
    "url": re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]]", re.IGNORECASE),
    "email": re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"),
    "id": re.compile(
        r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"
        r"|\b[A-Z][A-Z0-9]{1,9}-\d+\b|(?<!\w)#\d+\b|\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9]{6,}\b",
    ),
    "path": re.compile(
        r"(?<![\w/.:])(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+*-]+)*/?|\b[A-Za-z]:\\[\w\\.-]+"
        r"|(?<![\w/.@])(?<!\w-)[\w-]{1,80}(?:/[\w.-]+)*\.(?!com\b|org\b|net\b)[a-zA-Z][a-zA-Z0-9]{0,5}\b(?!\()|(?<![\w/])\w[\w.-]{0,80}(?:/[\w.-]+){2,}"
    ),
    "host": re.compile(
        r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b(?<!\w-)[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.(?:com|org|net|io|dev|local|internal)\b(?::\d+)?|\blocalhost:\d+\b"
    ),
    "version": re.compile(
        r"\bv?\d+\.\d+(?:\.\d+)+(?:[-+][\w.]+)?\b|\bv\d+(?:\.\d+)?\b|\b(?:version|release|python|node|java)\s+\d+(?:\.\d+)*",
        re.IGNORECASE,
    ),
    "port": re.compile(r"\bports?\s+(?:is\s+|now\s+)*\d{2,5}\b|(?<=\w):\d{2,5}\b", re.IGNORECASE),
    "amount": re.compile(rf"[$€£¥]\s?\d[\d.,']*\d*(?:\s?[kKmMbB]\b)?|{_NUMBER}\s?(?:€|£|¥)"),
    "date": re.compile(
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}})?)?|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b"
        rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b(?:,? \d{{4}})?"
        rf"|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
        rf"|\b{_MONTH} \d{{4}}\b|\b(?:19|20)\d\d\b|\bQ[1-4]\b"
    ),
    "time": re.compile(
        r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b)?|\b\d{1,2}\s?[ap]m\b"
        r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b(?:tomorrow|tonight|next (?:week|month|year))\b",
        re.IGNORECASE,
    ),
    "quantity": re.compile(rf"{_NUMBER}[\s-]?{_UNIT}"),
    "setting": re.compile(r"\b[A-Za-z_][\w.-]{0,80}\s?=\s?[^\s,;]+|(?<!\w)--?[a-z][\w-]+(?:=\S+)?"),
    "identifier": re.compile(
        r"\b[a-z]+\d*(?:[A-Z][a-z0-9]+)+\b|\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\b|\b\w+(?:_\w+)+\b|\b[A-Za-z_][\w.]{0,80}\(\)"
    ),
    "number": re.compile(r"(?<![\w.,:/-])\d{2,}(?![\w:/]|[.,]\d)"),
    "name": re.compile(
        r"(?<=[a-z0-9,] )[A-Z][a-zé'’-]+(?: (?:(?:de|van|von|of|the|la) )?[A-Z][\w'’-]+)*"
        r"|\b[A-Z][a-zé]+(?: [A-Z][a-zé'’-]+)+"
    ),
}
_NOT_NAMES = frozenset({"i", "i'm", "i'll", "i'd", "i've", "ok", "okay"})
_MOST_WORDS = 4
_CLEAR_COMMANDS = frozenset(
    re.findall(
        r"\S+",
        """sudo git docker docker-compose podman kubectl helm npm npx pnpm yarn pip pipx uv uvx poetry pytest cargo curl
        wget ssh scp rsync mkdir chmod chown systemctl journalctl apt apt-get brew psql mysql sqlite3 redis-cli
        terraform gcloud""",
    )
)
_COMMAND_WORDS = frozenset(
    re.findall(
        r"\S+",
        """python python3 node make go java cd ls cp mv rm cat grep sed awk find tar aws export bash sh""",
    )
)
_OPTION = re.compile(r"\s--?\w|\s[\w.~-]*/|=")
