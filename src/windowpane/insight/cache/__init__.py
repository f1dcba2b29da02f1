"""What providers read from their caches: what was expected, what broke the prefix, and what that cost."""
