"""AG-UI: turns for AG-UI frontends."""
