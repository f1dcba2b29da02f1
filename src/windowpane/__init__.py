"""Windowpane: the context engine for chat agents.

It decides what goes into every model request, records exactly what went in and why, and shows it, live and for
any past turn. Start with `windowpane.engine.Engine`, whose `turn()` is the shortest true description of it all.
"""
