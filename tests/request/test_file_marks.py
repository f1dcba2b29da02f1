"""What files were like, and what became of them."""

from __future__ import annotations

import hashlib
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from windowpane.context.events import FileMark
from windowpane.request import file_marks as filemarks
from windowpane.request.file_marks import MAX_HASHED_BYTES, file_states, mark_of, read_marks

pytestmark = pytest.mark.anyio


async def test_a_mark_is_the_hash_of_a_file_and_the_time_of_its_last_change(tmp_path: Path) -> None:
    file = tmp_path / "spec.md"
    file.write_bytes(b"first\r\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))

    assert await read_marks([str(file), str(tmp_path / "absent.md")]) == {
        str(file): FileMark(hashlib.sha256(b"first\r\n").hexdigest(), datetime.fromtimestamp(1_700_000_000, UTC))
    }


async def test_files_are_told_apart_as_existing_changed_and_missing(tmp_path: Path) -> None:
    same, touched, changed, gone, new = (str(tmp_path / name) for name in ("same", "touched", "changed", "gone", "new"))
    for path in (same, touched, changed, gone):
        Path(path).write_text("before")
    marks = await read_marks([same, touched, changed, gone, new])
    os.utime(touched, (1, 1))
    Path(changed).write_text("after")
    Path(gone).unlink()
    Path(new).write_text("was not there when it was named")

    assert await file_states([same, touched, changed, gone, new], marks) == {
        same: "exists",
        touched: "exists",
        changed: "changed",
        gone: "missing",
        new: "exists",
    }


async def test_a_large_file_is_known_by_its_size_and_time_and_never_read(tmp_path: Path) -> None:
    file = tmp_path / "disk.img"
    with file.open("wb") as sparse:
        sparse.truncate(MAX_HASHED_BYTES + 1)
    os.utime(file, ns=(0, 7))
    marks = await read_marks([str(file)])

    assert marks == {str(file): FileMark(f"stat:{MAX_HASHED_BYTES + 1}:7", datetime.fromtimestamp(0, UTC))}
    assert await file_states([str(file)], marks) == {str(file): "exists"}
    with file.open("ab") as sparse:
        sparse.truncate(MAX_HASHED_BYTES + 2)
    assert await file_states([str(file)], marks) == {str(file): "changed"}


async def test_special_files_are_never_opened_not_even_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to pipe").symlink_to("pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)  # a socket's name must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    paths = [str(tmp_path / name) for name in ("pipe", "link to pipe", "zero", "folder", "socket")]

    assert await read_marks([*paths, "/dev/zero", "/dev/stdin"]) == {}
    assert await file_states(paths, {}) == dict.fromkeys(paths, "exists")


async def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "round").symlink_to("round")
    link, broken, circle = (str(tmp_path / name) for name in ("link", "broken", "round"))

    assert list(await read_marks([link, broken, circle])) == [link]
    assert await file_states([link, broken, circle], {}) == {link: "exists", broken: "missing", circle: "missing"}


@pytest.mark.parametrize("name", ["a\nb", "<img src=x>", "-rf", "$(touch x)", "\u202egpj", "'\"", "ü 日本", "%2e%2e"])
async def test_a_hostile_name_is_a_name(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    Path(path).write_text("x")

    marks = await read_marks([path])

    assert list(marks) == [path]
    assert await file_states([path], marks) == {path: "exists"}


async def test_names_that_no_file_can_have_are_missing() -> None:
    impossible = ["/a\0b", "/" + "x" * 2000, "/etc/passwd/x"]

    assert await read_marks(impossible) == {}
    assert await file_states(impossible, {}) == dict.fromkeys(impossible, "missing")


async def test_nobody_waits_for_a_file_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filemarks, "PATIENCE_S", 0)
    (tmp_path / "file").write_text("x")
    path = str(tmp_path / "file")

    assert await read_marks([path]) == {}
    assert await file_states([path], {}) == {path: "exists"}
    assert mark_of(path) is not None
