"""Fetched context: pages that are sent in or fetched, search results, and clearing them."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from windowpane.api.sessions import FetchedList, FetchedView
from windowpane.context.fetched import FetchedKind
from windowpane.context.session import SessionState
from windowpane.errors import FetchFailedError, InvalidInputError
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.problems import BODY, problems
from windowpane.server.routes.sessions import Id, counts_of
from windowpane.text.tokens import count

router = APIRouter(prefix="/api/sessions/{session_id}", tags=["fetched"])


class PageIn(BaseModel):
    """A page that somebody has read, such as a browser: its address, and its text or its HTML."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(min_length=1, max_length=8000)]
    title: Annotated[str, Field(max_length=2000)] = ""
    text: str = ""
    html: str = ""


class PageAddress(BaseModel):
    """A page to fetch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(min_length=1, max_length=8000)]


def fetched_of(state: SessionState) -> FetchedList:
    """Return a session's fetched context as clients see it."""
    return FetchedList(
        items=tuple(
            FetchedView(
                kind=held.item.kind,
                url=held.item.url,
                title=held.item.title,
                site_name=held.item.site_name,
                at=held.at,
                characters=len(held.item.content),
                tokens=count(held.item.content),
            )
            for held in state.fetched
        ),
        counts=counts_of(state),
    )


@router.get("/fetched", summary="List fetched context", responses=problems(404))
async def list_fetched(engine: Reading, session_id: Id) -> FetchedList:
    """Return the pages and search results that the session holds."""
    return fetched_of(await engine.session(session_id))


@router.post("/pages", status_code=201, summary="Send a page in", responses=problems(*BODY, 404))
async def push_page(engine: Chatting, session_id: Id, page: PageIn) -> FetchedList:
    """Take in a page that was read elsewhere. Nothing is fetched; the same page again replaces its older copy."""
    try:
        state = await engine.push_page(session_id, page.url, title=page.title, text=page.text, html=page.html)
    except FetchFailedError as error:
        # Nobody was asked for the page: what is wrong with it is the sender's to correct.
        raise InvalidInputError(str(error)) from None
    return fetched_of(state)


@router.post("/pages/fetch", status_code=201, summary="Fetch a page", responses=problems(*BODY, 404, 502))
async def fetch_page(engine: Chatting, session_id: Id, page: PageAddress) -> FetchedList:
    """Fetch a page from the public web. Private and local addresses are refused, also after redirects."""
    return fetched_of(await engine.fetch_page(session_id, page.url))


@router.delete("/fetched", summary="Erase fetched context", responses=problems(404))
async def clear_fetched(
    engine: Chatting,
    session_id: Id,
    kind: Annotated[FetchedKind | None, Query(description="Only this kind; without it, all.")] = None,
) -> FetchedList:
    """Erase what was fetched. The conversation stays."""
    return fetched_of(await engine.clear_fetched(session_id, kind))
