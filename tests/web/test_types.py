from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S

WRITER = Path(__file__).parents[2] / "web" / "typescript.py"


def test_the_types_of_the_page_are_those_of_the_server() -> None:
    ended = subprocess.run(
        [sys.executable, WRITER, "--check"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert ended.returncode == 0, ended.stderr
