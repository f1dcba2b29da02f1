"""Make a request: gather, select, fit, prompt, assemble, record. `build.py` puts the steps together."""
