"""The HTTP door: parse, call the engine, render. One module per resource; `app.py` puts them together."""
