"""What Anthropic's own clients expect of a server: messages, models. A model is an agent."""

from windowpane.server.anthropic import messages, models
from windowpane.server.lazy_routes import LazyRouter

router = LazyRouter()
for _resource in (messages, models):
    router.routes.extend(_resource.router.routes)
