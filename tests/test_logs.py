"""When logging is set up, in a process of its own: it is set up once in each."""

import subprocess
import sys

import pytest

LATER = """
from windowpane.serving.logs import configure_logging, configure_logging_later
configure_logging_later('warning')
"""
LOADED = "; import sys; print('structlog' in sys.modules)"


@pytest.mark.parametrize(
    ("program", "loaded", "told"),
    [
        ("pass", False, []),
        ("import logging; logging.getLogger('lib').info('quiet')", False, []),
        ("import logging; logging.getLogger('lib').warning('a word of a library')", True, ["a word of a library"]),
        ("from windowpane.remarks import get_logger; get_logger().warning('of.ours')", True, ["of.ours"]),
        ("from windowpane.remarks import get_logger; get_logger().info('of.ours')", True, []),
        (
            "configure_logging('info'); from windowpane.remarks import get_logger; get_logger().info('of.a.server')",
            True,
            ["of.a.server"],
        ),
    ],
)
def test_what_writes_the_log_is_loaded_with_its_first_line_and_set_up_as_was_said_last(
    program: str, loaded: bool, told: list[str]
) -> None:
    run = [sys.executable, "-c", LATER + program + LOADED]
    done = subprocess.run(run, check=True, capture_output=True, text=True)

    assert done.stdout == f"{loaded}\n"
    assert [word for word in ("quiet", "a word of a library", "of.ours", "of.a.server") if word in done.stderr] == told
    assert len(done.stderr.splitlines()) == len(told)
