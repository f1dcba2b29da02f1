from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.place import engine_of, problem_in, served
from windowpane.server.applets.roots import Offer
from windowpane.server.process.configure import app_for
from windowpane.settings import Settings
from windowpane.testing import World

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

    assert roots == {"roots": [str(root)], "offered": None}
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


PROGRAMS = (
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "diff.evil.textconv",
    "diff.evil.command",
    "diff.external",
    "core.fsmonitor",
    "core.pager",
    "core.sshCommand",
    "core.askPass",
    "core.editor",
    "core.gitProxy",
    "credential.helper",
    "pager.diff",
    "uploadpack.packObjectsHook",
    "gpg.program",
    "alias.diff",
    "remote.origin.uploadpack",
)


@pytest.fixture
def program(root: Path) -> Path:
    """A program that leaves the file `ran` beside it when it runs."""
    file = root / "program.sh"
    file.write_text(f"#!/bin/sh\ntouch {root / 'ran'}\ncat\n")
    file.chmod(0o755)
    return file


def name_in_config(repository: Path, program: Path) -> None:
    for setting in PROGRAMS:
        git(repository, "config", setting, str(program))


def name_in_worktree_config(repository: Path, program: Path) -> None:
    git(repository, "config", "extensions.worktreeConfig", "true")
    for setting in PROGRAMS:
        git(repository, "config", "--worktree", setting, str(program))


def name_in_an_included_file(repository: Path, program: Path) -> None:
    for setting in PROGRAMS:
        git(repository, "config", "--file", str(repository / "included"), setting, str(program))
    git(repository, "config", "include.path", "../included")
    git(repository, "config", f"includeIf.gitdir:{repository}/.path", "../included")


def name_as_hooks(repository: Path, program: Path) -> None:
    for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"):
        shutil.copy(program, repository / ".git" / "hooks" / hook)
    git(repository, "config", "core.fsmonitor", ".git/hooks/fsmonitor-watchman")


def name_in_a_submodule(repository: Path, program: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x.txt").write_text("x")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "inner")
    git(repository, "add", "inner")
    git(repository, "commit", "-q", "-m", "with a submodule")
    name_in_config(inner, program)
    (inner / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (inner / "x.txt").write_text("y")


def name_as_a_promisor(repository: Path, program: Path) -> None:
    """Let git believe that missing objects can be fetched by running the program."""
    git(repository, "config", "core.repositoryFormatVersion", "1")
    git(repository, "config", "extensions.partialClone", "origin")
    git(repository, "config", "remote.origin.url", f"ext::{program}")
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "protocol.ext.allow", "always")
    blob = subprocess.run(
        ["git", "rev-parse", "HEAD:b.txt"], cwd=repository, env=GIT, check=True, capture_output=True, text=True
    ).stdout.strip()
    (repository / "b.txt").write_text("changed\n")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


@pytest.mark.parametrize(
    "name",
    [
        name_in_config,
        name_in_worktree_config,
        name_in_an_included_file,
        name_as_hooks,
        name_in_a_submodule,
        name_as_a_promisor,
    ],
)
async def test_no_program_that_a_repository_names_is_run(
    world: World,
    root: Path,
    repository: Path,
    program: Path,
    name: Callable[[Path, Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name(repository, program)
    (repository / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
    (repository / "a.txt").write_text("one\nTHREE\n")
    (root / "ran").unlink(missing_ok=True)
    for variable in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_ASKPASS", "GIT_PROXY_COMMAND"):
        monkeypatch.setenv(variable, str(program))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.external")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(program))
    async with served(world, roots=[root]) as client:
        whole = await client.get("/api/files/diff", params={"path": str(repository)})
        one = await client.get("/api/files/diff", params={"path": str(repository / "a.txt")})

    assert not (root / "ran").exists()
    assert one.status_code == 200, one.text
    assert "+THREE" in one.json()["patch"]
    # An object that is missing cannot be shown, and is not fetched.
    assert whole.status_code == (422 if name is name_as_a_promisor else 200), whole.text


async def test_a_repository_with_very_many_filters_is_read(world: World, root: Path, repository: Path) -> None:
    config = repository / ".git" / "config"
    config.write_text(config.read_text() + "".join(f'[filter "f{n}"]\n\tclean = x\n' for n in range(60_000)))
    (repository / "a.txt").write_text("one\nTHREE\n")
    async with served(world, roots=[root]) as client:
        response = await client.get("/api/files/diff", params={"path": str(repository)})

    assert [file["path"] for file in response.json()["files"]] == ["a.txt"]


async def test_a_linked_worktree_and_line_endings_are_read_as_git_reads_them(
    world: World, root: Path, repository: Path
) -> None:
    git(repository, "config", "core.autocrlf", "true")
    git(repository, "branch", "side")
    git(repository, "worktree", "add", "-q", str(root / "linked"), "side")
    (root / "linked" / "a.txt").write_bytes(b"one\r\nTHREE\r\n")
    async with served(world, roots=[root]) as client:
        response = await client.get("/api/files/diff", params={"path": str(root / "linked"), "base": "main"})

    assert response.json()["files"] == [
        {"path": "a.txt", "old_path": None, "status": "modified", "added": 1, "deleted": 1}
    ]


async def test_objects_outside_of_the_roots_are_not_read(
    world: World, root: Path, repository: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    alternates = repository / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{elsewhere / '.git' / 'objects'}\n")
    async with served(world, roots=[root]) as client:
        response = await client.get("/api/files/diff", params={"path": str(repository)})

    assert problem_in(response)["code"] == "missing_file"


async def test_a_repository_that_is_kept_elsewhere_is_not_read(
    world: World, root: Path, repository: Path, tmp_path: Path
) -> None:
    (repository / ".git").rename(tmp_path / "elsewhere.git")
    (repository / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere.git'}\n")
    async with served(world, roots=[root]) as client:
        response = await client.get("/api/files/diff", params={"path": str(repository)})

    assert problem_in(response)["code"] == "missing_file"


async def test_the_folder_that_the_server_was_started_in_is_shared_when_its_user_says_so(
    world: World, root: Path, tmp_path: Path
) -> None:
    answers = tmp_path / "data" / "shared.json"
    file = {"path": str(root / "notes.md")}
    (root / "notes.md").write_text("Here.\n")
    async with served(world, offer=Offer(root, answers)) as client:
        before = (await client.get("/api/files")).json()
        hidden = await client.get("/api/files/content", params=file)
        wrong = await client.post("/api/files", json={"path": str(root.parent)})
        shared = (await client.post("/api/files", json={"path": str(root)})).json()
        shown = await client.get("/api/files/content", params=file)
    async with served(world, offer=Offer(root, answers)) as client:
        kept = (await client.get("/api/files")).json()
        taken_back = (await client.post("/api/files", json={"path": str(root), "share": False})).json()
        gone = await client.get("/api/files/content", params=file)
    async with served(world) as client:
        not_offered = await client.post("/api/files", json={"path": str(root)})

    nothing: list[str] = []
    unshared, yes = ({"roots": roots, "offered": str(root)} for roots in (nothing, [str(root)]))
    assert (before, shared, kept, taken_back) == (unshared, yes, yes, unshared)
    assert (hidden.status_code, shown.json()["text"], gone.status_code) == (404, "Here.\n", 404)
    assert [problem_in(response)["status"] for response in (wrong, not_offered)] == [409, 409]


@pytest.mark.parametrize(
    ("settings", "token_needed", "folder", "offered"),
    [
        ({}, False, "project", True),
        ({"host": "::1"}, False, "project", True),
        ({"host": "0.0.0.0"}, False, "project", False),
        ({}, True, "project", False),
        ({"roots": ["/srv"]}, False, "project", False),
        ({}, False, "/", False),
        ({}, False, "~", False),
        ({}, False, None, False),
    ],
)
def test_only_a_server_for_its_own_user_offers_the_folder_that_it_was_started_in(
    world: World, tmp_path: Path, settings: dict[str, Any], token_needed: bool, folder: str | None, offered: bool
) -> None:
    chosen = Settings(data=tmp_path, **settings)
    started_in = None if folder is None else (tmp_path / folder if folder == "project" else Path(folder).expanduser())
    app = app_for(chosen, engine_of(world), token_needed=token_needed, started_in=started_in)

    assert (app.state.roots.offer is not None) is offered
