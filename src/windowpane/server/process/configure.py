"""The app that settings ask for: who may come in, by which names, how often."""

from pathlib import Path

from fastapi import FastAPI

from windowpane.callers import TokenFile, is_loopback
from windowpane.engine import Engine
from windowpane.server.app import create_app
from windowpane.server.applets.roots import Offer
from windowpane.server.middleware.cross_site import LOOPBACK_NAMES
from windowpane.settings import Settings

REQUESTS_PER_MINUTE = 600
"""How many requests a caller may send where others can reach the server."""


def app_for(settings: Settings, engine: Engine, *, token_needed: bool, started_in: Path | None = None) -> FastAPI:
    """Return the app for an engine, as the settings say. `started_in` may be shared with the page, if that is safe."""
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
        offer=_offer(settings, started_in) if started_in and not token_needed else None,
        grace_s=settings.grace_s,
        analytics_place=settings.analytics_place,
        upstreams=settings.xray_upstreams,
        root_path=settings.root_path,
        trust_forwarded_prefix=settings.trust_forwarded_prefix,
    )


def _offer(settings: Settings, folder: Path) -> Offer | None:
    """Return the folder that may be shared: not everything that there is, and only where no others come."""
    too_much = folder == folder.parent or folder == Path.home() or folder in Path.home().parents
    if settings.roots or too_much or not is_loopback(settings.host):
        return None
    return Offer(folder, settings.data / "shared.json")
