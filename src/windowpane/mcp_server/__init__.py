"""The door for MCP hosts: the working context of any session, and why its requests are as they are."""
