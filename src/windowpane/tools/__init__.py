"""Tools for models: MCP servers, their names as models see them, and who may call what."""
