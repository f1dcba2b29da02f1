"""A repository with two commits, changes that are in none, and a file whose name tries to be more than a name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HOSTILE = "<img src=x onerror=alert(1)>"


def repository(folder: Path) -> Path:
    """Make a repository in a new folder, with five changes since its last commit."""
    folder.mkdir(parents=True)
    _git(folder, "init", "-q", "-b", "main")
    (folder / "notes.md").write_text("one\ntwo\nthree\n")
    (folder / "old.txt").write_text("old\n")
    (folder / HOSTILE).write_text("harmless\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "First")
    _git(folder, "tag", "first")
    (folder / "notes.md").write_text("one\n2\nthree\n")
    _git(folder, "commit", "-q", "-a", "-m", "Second")
    (folder / "notes.md").write_text("one\n2\nthree\nfour\n")
    (folder / HOSTILE).write_text("still <b>harmless</b>\n")
    (folder / "old.txt").unlink()
    (folder / "new.txt").write_text("new\n")
    (folder / "deep").mkdir()
    (folder / "deep" / "down.txt").write_text("below\n")
    return folder


def _git(folder: Path, *arguments: str) -> None:
    """Run git with nobody's configuration."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_GLOBAL": "/dev/null"}
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, env=environ, check=True, capture_output=True)
