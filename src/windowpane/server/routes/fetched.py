"""Fetched context: pages that are sent in or fetched, search results, and clearing them."""

from typing import Annotated

from fastapi import Query
from pydantic import ConfigDict, Field

from windowpane.api.sessions import FetchedList
from windowpane.context.fetched import Fetched, FetchedKind
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import Id, RequestBody
from windowpane.server.problems import BODY, problems

router = LazyRouter(prefix="/api/sessions/{session_id}", tags=["fetched"])


class PageIn(RequestBody):
    """A page that a program, such as a browser, has read: its address, and its text or its HTML."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(min_length=1, max_length=8000)]
    title: Annotated[str, Field(max_length=2000)] = ""
    text: str = ""
    html: str = ""


class PageAddress(RequestBody):
    """A page to fetch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(min_length=1, max_length=8000)]


@router.get("/fetched", summary="List fetched context", responses=problems(404))
async def list_fetched(pane: Reading, session_id: Id) -> FetchedList:
    """Return the pages and search results that the session holds."""
    return await pane.sessions.fetched(session_id)


@router.post("/pages", status_code=201, summary="Send a page in", responses=problems(*BODY, 404))
async def push_page(pane: Chatting, session_id: Id, page: PageIn) -> FetchedList:
    """Take in a page that was read elsewhere. Nothing is fetched; the same page again replaces its older copy."""
    return await pane.sessions.push_page(session_id, page.url, title=page.title, text=page.text, html=page.html)


@router.post("/pages/fetch", status_code=201, summary="Fetch a page", responses=problems(*BODY, 404, 502))
async def fetch_page(pane: Chatting, session_id: Id, page: PageAddress) -> FetchedList:
    """Fetch a page from the public web. Private and local addresses are refused, also after redirects."""
    return await pane.sessions.fetch_page(session_id, page.url)


class FetchedIn(RequestBody):
    """Pages or search results that were fetched elsewhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    items: Annotated[tuple[Fetched, ...], Field(max_length=100)]


@router.post("/fetched", status_code=201, summary="Send pages or search results in", responses=problems(*BODY, 404))
async def add_fetched(pane: Chatting, session_id: Id, fetched: FetchedIn) -> FetchedList:
    """Take in what was fetched elsewhere. What is there already is replaced; what is too long is cut."""
    return await pane.sessions.add_fetched(session_id, fetched.items)


@router.delete("/fetched", summary="Erase fetched context", responses=problems(404, 409))
async def clear_fetched(
    pane: Chatting,
    session_id: Id,
    kind: Annotated[FetchedKind | None, Query(description="Only this kind; without it, all.")] = None,
) -> FetchedList:
    """Erase what was fetched, also from past requests and calls. The conversation stays.

    `remains` says what has the same words and is kept.
    """
    return await pane.sessions.clear_fetched(session_id, kind)
