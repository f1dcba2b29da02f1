from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from engine.world import World
from server.place import problem_in, served

GIT = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "PATH": os.environ["PATH"],
}


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=GIT, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "notes.md").write_text("Hello\n")
    (folder / "<b>.txt").write_text("odd")
    (folder / "picture").write_bytes(b"\xff\x00")
    (tmp_path / "secret").write_text("secret")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "out-folder").symlink_to(tmp_path)
    (folder / "in").symlink_to(folder / "notes.md")
    return folder


@pytest.fixture
def repository(root: Path) -> Path:
    folder = root / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "b.txt").write_text("b\n" * 20)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


async def test_a_folder_is_listed_page_by_page(world: World, root: Path) -> None:
    async with served(world, roots=[root]) as client:
        roots = (await client.get("/api/files")).json()
        first = (await client.get("/api/files/list", params={"path": str(root), "limit": 4})).json()
        rest = (
            await client.get("/api/files/list", params={"path": str(root), "limit": 4, "cursor": first["cursor"]})
        ).json()

    assert roots == {"roots": [str(root)]}
    assert [(entry["name"], entry["kind"]) for entry in first["entries"] + rest["entries"]] == [
        ("sub", "folder"),
        ("<b>.txt", "file"),
        ("in", "file"),
        ("notes.md", "file"),
        ("out", "other"),
        ("out-folder", "other"),
        ("picture", "file"),
    ]
    assert rest["cursor"] is None


async def test_a_file_is_read_and_written_by_its_revision(world: World, root: Path) -> None:
    file = root / "notes.md"
    content = "/api/files/content"
    async with served(world, roots=[root]) as client:
        read = await client.get(content, params={"path": str(file)})
        written = await client.put(
            content, params={"path": str(file)}, json={"text": "Bye\n"}, headers={"If-Match": read.headers["etag"]}
        )
        stale = await client.put(
            content, params={"path": str(file)}, json={"text": "Mine"}, headers={"If-Match": read.headers["etag"]}
        )
        made = await client.put(
            content, params={"path": str(root / "new.md")}, json={"text": "N"}, headers={"If-None-Match": "*"}
        )
        twice = await client.put(
            content, params={"path": str(root / "new.md")}, json={"text": "M"}, headers={"If-None-Match": "*"}
        )
        unsaid = await client.put(content, params={"path": str(file)}, json={"text": "M"})
        through = await client.put(
            content, params={"path": str(root / "in")}, json={"text": "L"}, headers={"If-Match": "*"}
        )
        binary = await client.get(content, params={"path": str(root / "picture")})

    assert read.json()["text"] == "Hello\n"
    assert written.json()["revision"] == written.headers["etag"].strip('"')
    assert problem_in(stale)["facts"] == {"what": str(file), "current": written.json()["revision"]}
    assert (made.status_code, (root / "new.md").read_text()) == (200, "N")
    assert [problem_in(response)["status"] for response in (twice, unsaid, binary)] == [409, 428, 422]
    assert (through.status_code, file.read_text(), (root / "in").is_symlink()) == (200, "L", True)
    assert sorted(entry.name for entry in root.iterdir() if entry.name.startswith(".")) == []


async def test_nothing_outside_of_the_roots_is_there(world: World, root: Path, tmp_path: Path) -> None:
    paths = [
        str(tmp_path / "secret"),
        str(root / "../secret"),
        str(root / "out"),
        str(root / "out-folder/secret"),
        "/etc/passwd",
        "notes.md",
        "",
        f"{root}/\0",
        f"{root}/" + "x" * 300,
        f"{root}/notes.md/x",
    ]
    async with served(world, roots=[root]) as client:
        for path in paths:
            asked = {"path": path}
            responses = [
                await client.get("/api/files/content", params=asked),
                await client.get("/api/files/list", params=asked),
                await client.get("/api/files/diff", params=asked),
                await client.put("/api/files/content", params=asked, json={"text": ""}, headers={"If-Match": "*"}),
                await client.put("/api/files/content", params=asked, json={"text": ""}, headers={"If-None-Match": "*"}),
            ]
            assert {response.status_code for response in responses} <= {404, 422}, path
    async with served(world) as client:
        closed = await client.get("/api/files/content", params={"path": str(root / "notes.md")})

    assert (tmp_path / "secret").read_text() == "secret"
    assert "WINDOWPANE_ROOTS" in problem_in(closed)["detail"]


async def test_what_changed_in_a_repository_is_shown(world: World, root: Path, repository: Path) -> None:
    (repository / "a.txt").write_text("one\nTWO\n")
    (repository / "b.txt").rename(repository / "c.txt")
    (repository / "new.txt").write_text("new")
    git(repository, "add", "-N", "c.txt")
    async with served(world, roots=[root]) as client:
        whole = (await client.get("/api/files/diff", params={"path": str(repository)})).json()
        one = (await client.get("/api/files/diff", params={"path": str(repository / "a.txt")})).json()
        odd = [
            await client.get("/api/files/diff", params={"path": str(repository), "base": base})
            for base in ("nothing", "--output=/tmp/x", "-O/x", "a..b", "")
        ]
        none = await client.get("/api/files/diff", params={"path": str(root)})

    assert whole["files"] == [
        {"path": "a.txt", "old_path": None, "status": "modified", "added": 1, "deleted": 1},
        {"path": "c.txt", "old_path": "b.txt", "status": "renamed", "added": 0, "deleted": 0},
        {"path": "new.txt", "old_path": None, "status": "untracked", "added": None, "deleted": None},
    ]
    assert "-two\n+TWO\n" in whole["patch"]
    assert (whole["repository"], whole["base"], whole["truncated"]) == (str(repository), "HEAD", False)
    assert [file["path"] for file in one["files"]] == ["a.txt"]
    assert {response.status_code for response in odd} == {422}
    assert problem_in(none)["code"] == "missing_file"


async def test_no_program_that_a_repository_names_is_run(world: World, root: Path, repository: Path) -> None:
    ran = root / "ran"
    program = root / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    for setting in (
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "core.fsmonitor",
        "core.pager",
    ):
        git(repository, "config", setting, str(program))
    (repository / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
    (repository / "a.txt").write_text("one\nTHREE\n")
    async with served(world, roots=[root]) as client:
        response = await client.get("/api/files/diff", params={"path": str(repository)})

    assert response.status_code == 200, response.text
    assert "+THREE" in response.json()["patch"]
    assert not ran.exists()


async def test_a_repository_that_is_kept_elsewhere_is_not_read(
    world: World, root: Path, repository: Path, tmp_path: Path
) -> None:
    (repository / ".git").rename(tmp_path / "elsewhere.git")
    (repository / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere.git'}\n")
    async with served(world, roots=[root]) as client:
        response = await client.get("/api/files/diff", params={"path": str(repository)})

    assert problem_in(response)["code"] == "missing_file"
