"""Texts for models: how they are written down, marked and counted."""
