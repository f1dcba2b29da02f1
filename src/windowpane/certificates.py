"""Which servers this process trusts: certificates that are read once for all HTTP clients, and not by each of them.

To read those of the system takes 20 to 40 ms. A file that was replaced is read again by clients that are made later.
"""

import os
import ssl
from functools import lru_cache
from pathlib import Path

import httpx2


def trusted(*, trust_env: bool = True) -> ssl.SSLContext:
    """Return what a client passes as `verify`. Without `trust_env`, `SSL_CERT_FILE` and `SSL_CERT_DIR` do not count."""
    named = tuple(os.environ.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")) if trust_env else ("", "")
    usual = ssl.get_default_verify_paths().openssl_cafile
    return _read(named, tuple(map(_changed_at, (*named, usual))))


# A process has one or two sets; those of a file before it was replaced are forgotten in time.
@lru_cache(maxsize=4)
def _read(named: tuple[str, ...], _changed: tuple[int, ...]) -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=any(named))


def _changed_at(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns if path else 0
    except OSError:
        return 0
