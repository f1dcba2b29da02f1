"""Whether an agent's folder changed, as the kernel tells it."""
