from contextlib import redirect_stdout
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from windowpane.cli.terminal import Screen, counted, styled, visible


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain – text\n\twith • signs", "plain – text\n\twith • signs"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("over\rwritten", "over\\rwritten"),
        ("abc\u202edcba", "abc\\u202edcba"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_control_codes_and_direction_marks_are_written_out(written: str, shown: str) -> None:
    assert visible(written) == shown


@given(st.text())
def test_nothing_visible_can_move_the_cursor(text: str) -> None:
    assert not any((ord(sign) < 32 and sign not in "\n\t") or 127 <= ord(sign) < 160 for sign in visible(text))


def test_what_is_piped_on_is_kept_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().write("a\tb\r\n\x1b[1m[bold]not markup[/bold]")

    assert capsys.readouterr().out == "a\tb\r\n\x1b[1m[bold]not markup[/bold]"


def test_remarks_stand_aside_when_a_program_may_read_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(remarks_aside=True)

    screen.line("the answer")
    screen.remark("a remark")

    assert tuple(capsys.readouterr()) == ("the answer\n", "a remark\n")


@given(st.text(st.characters(codec="utf-8")))
def test_a_plain_line_is_what_a_console_would_print(text: str) -> None:
    ours, expected = StringIO(), StringIO()

    with redirect_stdout(ours):
        Screen().line(text)
    Console(file=expected, highlight=False).print(styled(text), soft_wrap=True)

    assert ours.getvalue() == expected.getvalue()


def test_a_count_has_the_form_of_its_noun() -> None:
    assert [counted(number, "rule") for number in (0, 1, 1200)] == ["0 rules", "1 rule", "1,200 rules"]
