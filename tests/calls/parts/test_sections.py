"""A prompt is split by its structure: tags, headings, names of files and fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.calls.parts.sections import TextSection, Voice, sections_of


def told(text: str, voice: Voice) -> list[tuple[str, str, str]]:
    """Return kind, name and text of each section."""
    found = sections_of(text, voice)
    ends = [*(section.start for section in found[1:]), len(text)]
    return [(section.kind, section.name, text[section.start : end]) for section, end in zip(found, ends, strict=True)]


def test_a_system_prompt_is_split_at_its_headings_and_files_keep_theirs() -> None:
    text = (
        "You help.\n"
        "# Style\nBe brief.\n```\n# not a heading\n```\n### Deep\nStays.\n"
        "# Environment\n- Platform: moon\n"
        "# MCP Server Instructions\nAs follows.\n## clock\nAsk for times.\n"
        "Instructions from: /home/me/AGENTS.md\n# House rules\nNo shoes.\n"
        "<available_skills>\n- knit\n</available_skills>\n"
    )

    assert told(text, "system") == [
        ("system", "introduction", "You help.\n"),
        ("system", "Style", "# Style\nBe brief.\n```\n# not a heading\n```\n### Deep\nStays.\n"),
        ("environment", "Environment", "# Environment\n- Platform: moon\n"),
        ("mcp", "MCP Server Instructions", "# MCP Server Instructions\nAs follows.\n"),
        ("mcp", "clock", "## clock\nAsk for times.\n"),
        (
            "instructions",
            "/home/me/AGENTS.md",
            "Instructions from: /home/me/AGENTS.md\n# House rules\nNo shoes.\n",
        ),
        ("skills", "available_skills", "<available_skills>\n- knit\n</available_skills>\n"),
    ]


def test_lists_that_a_line_announces_are_sections_and_a_billing_line_is_one() -> None:
    text = (
        "x-acme-billing-header: v=1\n\nSkills you can use:\n\n- knit: Knits.\n- purl: Purls.\n\n"
        "Agents there are:\n- ann: Cooks.\n"
    )

    assert told(text, "system") == [
        ("billing", "x-acme-billing-header", "x-acme-billing-header: v=1\n\n"),
        ("skills", "skills", "Skills you can use:\n\n- knit: Knits.\n- purl: Purls.\n\n"),
        ("system", "agents", "Agents there are:\n- ann: Cooks.\n"),
    ]


def test_what_a_program_put_into_a_message_is_told_from_what_its_user_wrote() -> None:
    files = (
        "<system-reminder>\nHere are notes.\n\nContents of /a/CLAUDE.md (mine):\n# Rules\nTea.\n\n"
        "Contents of /b/CLAUDE.md:\nBrief.\n</system-reminder>\n"
    )
    status = "<system-reminder>\nFor you:\n# gitStatus\nclean\n</system-reminder>\n"
    credit = "<system-reminder>\nEnd commits with:\nCo-Authored-By: A <a@b.c>\n</system-reminder>\n"
    other = "<system-reminder>\nTime flies.\n</system-reminder>\n"

    assert [(kind, name) for kind, name, _ in told(f"{files}{status}{credit}{other}# Why?\n", "user")] == [
        ("instructions", "/a/CLAUDE.md"),
        ("instructions", "/b/CLAUDE.md"),
        ("environment", "gitStatus"),
        ("billing", "Co-Authored-By"),
        ("reminder", "Time flies."),
        ("message", ""),
    ]


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("# Mine\nIs <env> a tag?", [("message", "")]),
        ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", [("environment", "environment_context")]),
        ("# AGENTS.md instructions for /x\n<INSTRUCTIONS>\n# A\n</INSTRUCTIONS>", [("instructions", "/x/AGENTS.md")]),
        ("<note>\nHush.\n</note>", [("reminder", "Hush.")]),
        (
            "<session_context>\nToday.\n<project_context>\n--- Context from: /x/GEMINI.md ---\nTea.\n"
            "--- End of Context from: /x/GEMINI.md ---\n</project_context>\n</session_context>",
            [("environment", "session_context"), ("instructions", "/x/GEMINI.md")],
        ),
    ],
)
def test_programs_enclose_their_notes_in_different_ways(text: str, sections: list[tuple[str, str]]) -> None:
    assert [(kind, name) for kind, name, _ in told(text, "user")] == sections


def test_a_heading_that_names_a_file_begins_what_the_file_says() -> None:
    text = "You help.\n# Workspace AGENTS.md\nBe brief.\n# Workspace\n/home/me\n"

    assert told(text, "system") == [
        ("system", "introduction", "You help.\n"),
        ("instructions", "Workspace AGENTS.md", "# Workspace AGENTS.md\nBe brief.\n"),
        ("environment", "Workspace", "# Workspace\n/home/me\n"),
    ]


def test_a_result_is_one_section_apart_from_reminders_in_it() -> None:
    text = "# A file\n<env>\nx\n</env>\n<system-reminder>\nMind the gap.\n</system-reminder>\n"

    assert told(text, "tool") == [
        ("result", "", "# A file\n<env>\nx\n</env>\n"),
        ("reminder", "Mind the gap.", "<system-reminder>\nMind the gap.\n</system-reminder>\n"),
    ]


PIECES = st.sampled_from(
    (
        "# A\n",
        "## B\n",
        "<env>",
        "</env>\n",
        "\n<system-reminder>",
        "</system-reminder>",
        "words\n",
        "Contents of /x.md\n",
    )
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=20).map("".join), st.sampled_from(("system", "user", "tool")))
def test_sections_begin_at_the_beginning_and_follow_one_another(text: str, voice: Voice) -> None:
    found = sections_of(text, voice)

    starts = [section.start for section in found]
    assert starts[:1] == [0]
    assert starts == sorted(set(starts))
    assert all(start < len(text) for start in starts[1:])
    assert all(isinstance(section, TextSection) for section in found)


def test_tags_within_tags_are_looked_into_only_so_deep() -> None:
    opened = [f"<env n{number}>\n" for number in range(2_000)]
    closed = [f"</env n{number}>\n" for number in reversed(range(2_000))]

    assert sections_of("".join((*opened, *closed)), "user") == (TextSection(0, "environment", "env"),)


def test_each_of_many_tags_that_are_never_closed_is_looked_for_once() -> None:
    # Read again from each of its tags this text is 15 billion characters.
    assert sections_of("<a>\n" * 60_000, "user") == (TextSection(0, "message", ""),)
