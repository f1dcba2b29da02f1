"""Windowpane inside other people's agents and sites. Each module needs what it is named for, and nothing else does."""
