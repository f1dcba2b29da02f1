"""The app that settings ask for: who may come in, by which names, how often."""

from fastapi import FastAPI

from windowpane.callers import TokenFile
from windowpane.engine import Engine
from windowpane.server.app import create_app
from windowpane.server.middleware.cross_site import LOOPBACK_NAMES
from windowpane.settings import Settings

REQUESTS_PER_MINUTE = 600
"""How many requests a caller may send where others can reach the server."""


def app_for(settings: Settings, engine: Engine, *, token_needed: bool) -> FastAPI:
    """Return the app for an engine, as the settings say."""
    limit = settings.requests_per_minute
    if limit is None and token_needed:
        limit = REQUESTS_PER_MINUTE
    # Who needs a token is not helped by a name of their own that points here.
    usual = None if token_needed else (*LOOPBACK_NAMES, settings.host)
    return create_app(
        engine,
        hosts=settings.hosts or usual,
        tokens=TokenFile(settings.tokens_file),
        token_needed=token_needed,
        origins=settings.allow_origins,
        requests_per_minute=limit or None,
        roots=settings.roots,
        grace_s=settings.grace_s,
        analytics_file=settings.analytics_file,
        upstreams=settings.xray_upstreams,
    )
