from pathlib import Path
from typing import Any

import pytest

from cli.running import windowpane
from windowpane.errors import InvalidSettingError
from windowpane.server.process.workers import environment
from windowpane.settings import Settings, without_password
from windowpane.wiring import encryption_keys, open_sessions, open_vectors

KEY = "YSBrZXkgdGhhdCBvbmx5IHRlc3RzIHdpbGwgdXNlLi4="


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db.example:5432/panes", "postgresql://ann:…@db.example:5432/panes"),
        ("redis://:s3cret@cache.example:6379/0", "redis://:…@cache.example:6379/0"),
        ("postgresql://ann:s3/c@r?t@db.example/panes", "postgresql://ann:…@db.example/panes"),
        (
            "postgresql://db.example/panes?user=ann&password=s3cret&x=1",
            "postgresql://db.example/panes?user=ann&password=…&x=1",
        ),
        (
            "redis://db.example/0?next=/a?token=s3cret&my?key?x=s3cret#top",
            "redis://db.example/0?next=/a?token=…&my?key?x=…#top",
        ),
        ("redis://db.example/0" + "?key" * 15_000, "redis://db.example/0" + "?key" * 15_000),
        ("redis" + "://a:" * 15_000, "redis" + "://a:" * 15_000),
        ("redis://cache.example:6379/0", "redis://cache.example:6379/0"),
        ("sqlite:////srv/windowpane.db", "sqlite:////srv/windowpane.db"),
        ("memory:", "memory:"),
    ],
)
def test_a_store_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert Settings(store_url=url).shown_database_url == shown


def test_workers_are_told_the_secrets_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    settings = Settings.model_validate({"encryption_key": KEY, "embeddings_key": "secret", "port": 0})

    told = environment(settings, False, Path("/counters"))

    assert told == {
        "PROMETHEUS_MULTIPROC_DIR": "/counters",
        "WINDOWPANE_ENCRYPTION_KEY": KEY,
        "WINDOWPANE_EMBEDDINGS_KEY": "secret",
        "WINDOWPANE_PORT": "0",
        "WINDOWPANE_REQUIRE_TOKEN": "false",
    }
    assert KEY not in repr(settings)


def test_with_a_key_sessions_and_vectors_are_encrypted_also_in_memory_and_in_the_archive(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    keys = {"encryption_key_file": str(file)}
    ephemeral = {"profile": "ephemeral", "archive_url": f"sqlite:///{tmp_path}/archive.db"}
    asked = [
        {"data": tmp_path},
        {"data": tmp_path, **keys},
        {"data": tmp_path, "store_url": "memory:", "encryption_key": KEY},
        {"data": tmp_path, **keys, **ephemeral},
    ]

    settings = [Settings.model_validate(each) for each in asked]

    assert [open_sessions(each).encrypted for each in settings] == [False, True, True, True]
    assert len({open_vectors(each).path for each in settings}) == 2


def test_a_key_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(128, 160)))
    (tmp_path / "key").write_text(KEY)
    missing = tmp_path / "missing"
    wrong = [
        ({"encryption_key": ""}, "encryption_key: a key is 32 random bytes in base64"),
        ({"encryption_key_file": str(missing)}, f"encryption_key_file: {missing} cannot be read: No such file"),
        ({"encryption_key_file": str(tmp_path / "binary")}, "encryption_key_file: a key is 32 random bytes in base64"),
        (
            {"encryption_key": KEY, "encryption_key_file": str(tmp_path / "key")},
            "encryption_key_file: there is an encryption_key as well; keep one of them",
        ),
    ]

    for given, why in wrong:
        with pytest.raises(InvalidSettingError) as caught:
            encryption_keys(Settings.model_validate(given))
        assert str(caught.value).startswith(why)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("/srv/notes", (Path("/srv/notes"),)),
        ("/srv/notes, /srv/plans", (Path("/srv/notes"), Path("/srv/plans"))),
        ('["/srv/a,b"]', (Path("/srv/a,b"),)),
        ("", ()),
    ],
)
def test_a_list_is_written_with_commas_or_as_json(
    monkeypatch: pytest.MonkeyPatch, written: str, read: tuple[Path, ...]
) -> None:
    monkeypatch.setenv("WINDOWPANE_ROOTS", written)

    assert Settings().roots == read


@pytest.mark.parametrize(
    ("variable", "written", "why"),
    [
        ("WINDOWPANE_ROOTS", '["/srv', 'it is no JSON such as ["a", "b"]: Unterminated string'),
        ("WINDOWPANE_XRAY_UPSTREAMS", "gateway", 'it is no JSON such as {"name": "value"}: Expecting value'),
    ],
)
def test_a_setting_that_cannot_be_read_is_named_with_what_to_write(
    tmp_path: Path, variable: str, written: str, why: str
) -> None:
    given: dict[str, Any] = {variable: written}

    done = windowpane(tmp_path, "sessions", **given)

    assert (done.code, done.err.startswith(f"error: {variable}: {why}")) == (1, True)
