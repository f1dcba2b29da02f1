"""Turn the bytes of a page into text, whatever its site says or leaves unsaid about them.

What the bytes themselves begin with counts most, then the header, then what HTML says about itself, then whether they
are UTF-8, then a guess. A label that the bytes contradict is passed over.
"""

from charset_normalizer import from_bytes
from w3lib.encoding import html_body_declared_encoding, read_bom, resolve_encoding

GUESSED_BYTES = 16_384
FEW_BROKEN = 0.1
"""The share of characters beyond ASCII that may be broken in a text whose label is believed all the same."""

TEXT_CODECS = frozenset(
    {"utf-8", "utf-16-le", "utf-16-be", "utf-16", "gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "cp932", "cp949"}
    | {"koi8-r", "koi8-u", "cp866", "cp874", "mac-roman", "mac-cyrillic"}
    | {f"cp125{number}" for number in range(9)}
    | {f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)}
)
"""The encodings of the web. Python knows others that are no encodings of text, and some that are slow on purpose."""


def decode(body: bytes, label: str = "") -> str:
    """Return the text of a page; `label` is the charset that its header names."""
    encoding, mark = read_bom(body)
    if encoding is not None and mark is not None:
        return body[len(mark) :].decode(encoding, "replace")
    labels = [codec_of(label), _declared(body), "utf-8"]
    codecs_to_try = list(dict.fromkeys(codec for codec in labels if codec is not None))
    for codec in codecs_to_try:
        if (text := _strict(body, codec)) is not None:
            return text
    for codec in codecs_to_try:
        text = body.decode(codec, "replace")
        if text.count("�") <= FEW_BROKEN * (len(text) - len(text.encode("ascii", "ignore"))):
            return text
    return _guessed(body) or body.decode(codecs_to_try[0], "replace")


def codec_of(label: str) -> str | None:
    """Return the codec that a charset label means on the web, or None when it means none."""
    name = resolve_encoding(label)
    return name if name in TEXT_CODECS else None


def _declared(body: bytes) -> str | None:
    codec = codec_of(html_body_declared_encoding(body) or "")
    # A page that could be read so far is not in UTF-16, whatever it says.
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec


def _strict(body: bytes, codec: str) -> str | None:
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        return None


def _guessed(body: bytes) -> str | None:
    best = from_bytes(body[:GUESSED_BYTES]).best()
    codec = codec_of(best.encoding) if best else None
    return body.decode(codec, "replace") if codec else None
