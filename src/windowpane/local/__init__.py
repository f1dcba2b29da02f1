"""The API in this process: a pane over an engine, bound to one owner."""
