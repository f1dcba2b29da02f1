"""What Anthropic's own clients expect of a server: messages, models. A model is an agent."""

from fastapi import APIRouter

from windowpane.server.anthropic import messages, models

router = APIRouter()
for _resource in (messages, models):
    router.routes.extend(_resource.router.routes)
