"""Commands that show what a model gets, and why."""
