"""Agents: folders that say what is available."""
