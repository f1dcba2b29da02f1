"""What OpenAI's own clients expect of a server: models, chat completions, responses, conversations, embeddings."""

from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai import chat, conversations, embeddings, models, responses, stored

router = LazyRouter()
for _resource in (models, chat, responses, stored, conversations, embeddings):
    router.routes.extend(_resource.router.routes)
