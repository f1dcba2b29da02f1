"""What OpenAI's own clients expect of a server: models, chat completions, responses, conversations, embeddings."""

from fastapi import APIRouter

from windowpane.server.openai import chat, conversations, embeddings, models, responses, stored

router = APIRouter()
for _resource in (models, chat, responses, stored, conversations, embeddings):
    router.routes.extend(_resource.router.routes)
