"""The commands: one module each, in the sections of `windowpane --help`.

A module is loaded for its help too. So it imports at its top only what is light; the engine and the client are
imported by `cli/connect.py` when the command runs.
"""
