import pytest

from windowpane.settings import Settings, without_password


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
        ("redis://cache.example:6379/0", "redis://cache.example:6379/0"),
        ("sqlite:////srv/windowpane.db", "sqlite:////srv/windowpane.db"),
        ("memory:", "memory:"),
    ],
)
def test_a_store_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert Settings(store_url=url).shown_database_url == shown
