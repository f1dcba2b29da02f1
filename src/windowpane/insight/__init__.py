"""Looking back: what was sent, and why."""
