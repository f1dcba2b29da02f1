"""The calls of sessions, and those that belong to none."""
