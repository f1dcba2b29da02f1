"""One API for two transports: what a pane can do, and the values that it answers with."""
