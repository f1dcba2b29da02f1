"""The steps of a turn: gather, select, fit, prompt, assemble, record, run, with `build` and `carry` around them.

Each module is named for its one verb. Most only compute: values go in, values come out. `build` makes a request from
everything as it is now; `carry` runs whole turns in the background and is what the engine calls.
"""
