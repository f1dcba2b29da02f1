"""What OpenAI's own clients expect of a server: chat completions, responses, models. A model is an agent."""

from fastapi import APIRouter

from windowpane.server.openai import chat, models, responses

router = APIRouter()
for _resource in (models, chat, responses):
    router.routes.extend(_resource.router.routes)
