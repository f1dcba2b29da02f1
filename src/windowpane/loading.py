"""Load modules without looking for garbage meanwhile.

What a module makes stays. To look through all of it again and again while more of it comes takes a tenth to a fifth of
the time that loading takes, and finds nothing.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loading() -> Generator[None]:
    """Import in here. What there is at the end is not looked through for garbage from then on."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()
