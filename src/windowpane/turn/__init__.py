"""Run a turn: the runner, the loop of model and tool calls, and the sources of an answer."""
