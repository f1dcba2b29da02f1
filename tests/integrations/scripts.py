"""Run a script in a process that was forked, as if it had been started by hand."""

from __future__ import annotations

import os
import runpy
import sys
import warnings
from collections.abc import Callable
from pathlib import Path


def run_script(script: Path, folder: Path, say: Callable[[str], None]) -> None:
    """Run a script in a folder, where every warning is an error."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "open_binary is deprecated", DeprecationWarning)
    os.chdir(folder)
    sys.argv = [str(script)]
    say("begun")
    runpy.run_path(str(script), run_name="__main__")
