"""The HTTP API, one module per resource. Routes do not import one another."""
