"""A wire server in a process of its own, for tests that need their own event loop."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).parent.parent


@contextmanager
def wire_process(script: Path, protocol: str = "openai") -> Generator[str]:
    """Run a wire server with the answers of a script, and yield its address."""
    command = [sys.executable, "-m", "wire", "--protocol", protocol, "--script", str(script)]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()
