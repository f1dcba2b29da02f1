"""How long tests wait for processes: as long as these get on. One ceiling ends what hangs."""

PATIENCE_S = 600.0
"""A busy machine takes minutes to start a server or a browser. That is no fault, so no test waits for less."""
