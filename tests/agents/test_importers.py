"""Import on trees of the shape that people have."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from windowpane.agents.folder import AgentFolder
from windowpane.agents.importers.base import Outcome
from windowpane.agents.importers.run import import_into

TREE = {
    "AGENTS.md": "# Repository guidelines\n\nRun `make test` before you commit. See @docs/gone.md for branches.\n",
    "CLAUDE.md": "# Claude\n\nPrefer small commits: @docs/git.md and not `@docs/code.md`, @~/mine.md, @../out.md\n"
    "\nSee @NOTES. Ask @ada, who keeps @types/node.\n",
    "NOTES": "Read me first.\n",
    "docs/git.md": "Branch early. See @more.md.\n",
    "docs/more.md": "Back to @git.md and @../CLAUDE.md\n",
    ".github/instructions/all.instructions.md": "---\napplyTo: '**'\n---\nBe exact.\n",
    ".github/instructions/py.instructions.md": "---\napplyTo: '**/*.py'\ndescription: Python\n---\nType it.\n",
    ".github/prompts/review.prompt.md": "---\ndescription: Review a change\n---\nReview it.\n",
    ".claude/rules/api.md": "---\npaths: src/api/**\n---\nCheck input.\n",
    ".claude/commands/ship.md": "---\ndescription: Ship it\n---\nTag and push.\n",
    ".claude/agents/critic.md": "---\nname: critic\n---\nYou criticise.\n",
    ".clinerules/workflows/release.md": "# Release\n",
    ".clinerules/hooks/PreToolUse": "#!/bin/sh\n",
    ".windsurf/rules/on.md": "---\ntrigger: always_on\n---\nLint.\n",
    ".windsurf/rules/tests.md": "---\ntrigger: glob\nglobs: tests/**\n---\nNo sleeps.\n",
    ".roo/rules/plain.md": "Say why.\n",
    ".roo/rules-code/fast.md": "Measure.\n",
    ".roorules-debug": "Print less.\n",
    ".continue/rules/cont.md": "Go on.\n",
    ".kiro/steering/product.md": "---\ninclusion: manual\n---\nWhat it is for.\n",
    ".junie/guidelines.md": "Keep imports sorted.\n",
    ".junie/AGENTS.md": "Name things plainly.\n",
    ".amazonq/rules/aws.md": "Least privilege.\n",
    "CLAUDE.local.md": "My own sandbox URL.\n",
    "packages/api/AGENTS.md": "Use the repository pattern here.\n",
    ".github/copilot-instructions.md": "Write tests first.\n",
    ".cursor/rules/style.mdc": "---\ndescription: \nglobs: \nalwaysApply: true\n---\n\nUse four spaces.\n",
    ".cursor/rules/react.mdc": (
        "---\ndescription: React components\nglobs: *.tsx,src/**/*.ts\nalwaysApply: false\n---\n\nUse hooks.\n"
    ),
    ".cursor/rules/db/migrations.mdc": (
        "---\ndescription: 'How to write a migration'\nalwaysApply: false\n---\nNever drop.\n"
    ),
    ".cursor/rules/loose.mdc": "---\nalwaysApply: false\n---\nOnly when asked.\n",
    ".cursor/rules/broken.mdc": "---\nalwaysApply: true\nNo end.\n",
    ".clinerules/coding.md": "Prefer composition.\n",
    ".clinerules/docs.md": '---\npaths:\n  - "docs/**"\n  - README.md\n---\nWrite plainly.\n',
    ".claude/skills/pdf-forms/SKILL.md": (
        "---\nname: pdf-forms\ndescription: >\n"
        "  Fill in PDF forms.\n  Use when a form is a PDF.\n---\n# Forms\n\nRun the script.\n"
    ),
    ".claude/skills/pdf-forms/references/fields.md": "# Fields\n\nText, choice.\n",
    ".claude/skills/pdf-forms/scripts/fill.py": "print()\n",
    "node_modules/x/AGENTS.md": "Not ours.\n",
    "README.md": "# Project\n",
    "server.json": json.dumps(
        {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json",
            "name": "io.github.acme/weather",
            "packages": [
                {
                    "registryType": "npm",
                    "identifier": "@acme/weather",
                    "version": "1.2.0",
                    "packageArguments": [{"type": "named", "name": "--units", "default": "metric"}],
                    "environmentVariables": [{"name": "ACME_KEY", "isRequired": True, "isSecret": True}],
                }
            ],
        }
    ),
    ".mcp.json": json.dumps(
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "server-filesystem", "."], "env": {"TOKEN": "${TOKEN}"}},
                "web": {"type": "http", "url": "https://example.org/mcp"},
                "both": {"command": "x", "url": "https://example.org"},
                "old": {"type": "sse", "url": "https://example.org/sse"},
            }
        }
    ),
    ".vscode/mcp.json": """{
  // servers of the editor
  "servers": {"asks": {"command": "x", "env": {"KEY": "${input:key}"}}, /* a URL: */
    "remote": {"url": "https://example.org/mcp//x", "autoApprove": ["a"]},},
  "inputs": [],
}""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in TREE.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (root / "GEMINI.md").symlink_to(root / "AGENTS.md")
    return root


def by_source(outcomes: list[Outcome]) -> dict[str, tuple[str, str]]:
    return {outcome.source: (outcome.became, outcome.target) for outcome in outcomes}


def test_a_project_becomes_items_with_the_matching_include_mode(project: Path, tmp_path: Path) -> None:
    outcomes = import_into(tmp_path / "pane", [project])

    assert by_source(outcomes) == {
        ".amazonq/rules/aws.md": ("created", "rules/aws.md"),
        ".claude/agents/critic.md": ("not_imported", ""),
        ".claude/commands/ship.md": ("created", "rules/ship.md"),
        ".claude/rules/api.md": ("created", "rules/api.md"),
        ".claude/skills/pdf-forms/SKILL.md": ("created", "references/pdf-forms.md"),
        ".claude/skills/pdf-forms/references/fields.md": ("created", "references/pdf-forms-references-fields.md"),
        ".claude/skills/pdf-forms/scripts/fill.py": ("not_imported", ""),
        ".clinerules/coding.md": ("created", "rules/coding.md"),
        ".clinerules/docs.md": ("created", "rules/docs.md"),
        ".clinerules/hooks/PreToolUse": ("not_imported", ""),
        ".clinerules/workflows/release.md": ("created", "rules/release.md"),
        ".continue/rules/cont.md": ("created", "rules/cont.md"),
        ".cursor/rules/broken.mdc": ("not_imported", ""),
        ".cursor/rules/db/migrations.mdc": ("created", "rules/migrations.md"),
        ".cursor/rules/loose.mdc": ("created", "rules/loose.md"),
        ".cursor/rules/react.mdc": ("created", "rules/react.md"),
        ".cursor/rules/style.mdc": ("created", "rules/style.md"),
        ".github/copilot-instructions.md": ("created", "rules/copilot-instructions.md"),
        ".github/instructions/all.instructions.md": ("created", "rules/all.md"),
        ".github/instructions/py.instructions.md": ("created", "rules/py.md"),
        ".github/prompts/review.prompt.md": ("created", "rules/review.md"),
        ".junie/AGENTS.md": ("created", "rules/agents-2.md"),
        ".junie/guidelines.md": ("created", "rules/guidelines.md"),
        ".kiro/steering/product.md": ("created", "rules/product.md"),
        ".mcp.json both": ("not_imported", ""),
        ".mcp.json files": ("created", "mcp.json files"),
        ".mcp.json old": ("not_imported", ""),
        ".mcp.json web": ("created", "mcp.json web"),
        ".roo/rules-code/fast.md": ("created", "rules/fast.md"),
        ".roo/rules/plain.md": ("created", "rules/plain.md"),
        ".roorules-debug": ("created", "rules/roorules-debug.md"),
        ".vscode/mcp.json asks": ("not_imported", ""),
        ".vscode/mcp.json remote": ("created", "mcp.json remote"),
        ".windsurf/rules/on.md": ("created", "rules/on.md"),
        ".windsurf/rules/tests.md": ("created", "rules/tests.md"),
        "AGENTS.md": ("created", "rules/agents.md"),
        "AGENTS.md @docs/gone.md": ("not_imported", ""),
        "CLAUDE.md @../out.md": ("not_imported", ""),
        "CLAUDE.md @~/mine.md": ("not_imported", ""),
        "GEMINI.md": ("not_imported", ""),
        "GEMINI.md @docs/gone.md": ("not_imported", ""),
        "CLAUDE.local.md": ("not_imported", ""),
        "CLAUDE.md": ("created", "rules/claude.md"),
        "packages/api/AGENTS.md": ("created", "rules/agents-packages-api.md"),
        "server.json io.github.acme/weather": ("created", "mcp.json weather"),
    }
    agent = AgentFolder(tmp_path / "pane").current()
    assert agent.prompts.core
    assert {rule.name: (rule.include, rule.description) for rule in agent.rules} == {
        "agents": ("always", "Instructions from AGENTS.md"),
        "agents-2": ("always", "Instructions from .junie/AGENTS.md"),
        "agents-packages-api": ("agent", "Instructions for work in packages/api/"),
        "all": ("always", "From .github/instructions/all.instructions.md"),
        "api": ("agent", "Applies to src/api/**"),
        "aws": ("always", "From .amazonq/rules/aws.md"),
        "claude": ("always", "Instructions from CLAUDE.md"),
        "coding": ("always", "From .clinerules/coding.md"),
        "cont": ("always", "From .continue/rules/cont.md"),
        "copilot-instructions": ("always", "Instructions from .github/copilot-instructions.md"),
        "docs": ("agent", "Applies to docs/**, README.md"),
        "fast": ("agent", "For the mode code"),
        "guidelines": ("always", "From .junie/guidelines.md"),
        "loose": ("manual", ""),
        "migrations": ("agent", "How to write a migration"),
        "on": ("always", "From .windsurf/rules/on.md"),
        "plain": ("always", "From .roo/rules/plain.md"),
        "product": ("manual", "From .kiro/steering/product.md"),
        "py": ("agent", "Python. Applies to **/*.py"),
        "roorules-debug": ("agent", "For the mode debug"),
        "release": ("manual", "From .clinerules/workflows/release.md"),
        "review": ("manual", "Review a change"),
        "ship": ("manual", "Ship it"),
        "tests": ("agent", "Applies to tests/**"),
        "react": ("agent", "React components. Applies to *.tsx,src/**/*.ts"),
        "style": ("always", ""),
    }
    assert {reference.name: (reference.include, reference.related) for reference in agent.references} == {
        "pdf-forms": ("agent", ("pdf-forms-references-fields",)),
        "pdf-forms-references-fields": ("agent", ()),
    }
    skill = agent.reference("pdf-forms")
    assert skill is not None
    assert (skill.description, skill.text) == (
        "Fill in PDF forms. Use when a form is a PDF.",
        "# Forms\n\nRun the script.\n\nFiles of this skill:\n\n"
        "- references/fields.md: `read_reference` with the name `pdf-forms-references-fields`\n",
    )
    claude = agent.rule("claude")
    assert claude is not None
    assert claude.text == (
        "# Claude\n\nPrefer small commits: @docs/git.md and not `@docs/code.md`, @~/mine.md, @../out.md\n\n"
        "See @NOTES. Ask @ada, who keeps @types/node.\n\n"
        "# docs/git.md\n\nBranch early. See @more.md.\n\n# docs/more.md\n\nBack to @git.md and @../CLAUDE.md\n\n"
        "# NOTES\n\nRead me first.\n"
    )
    tool_servers = json.loads((tmp_path / "pane/mcp.json").read_text())["mcpServers"]
    assert tool_servers["files"]["cwd"] == str(project)
    assert tool_servers["remote"] == {"url": "https://example.org/mcp//x", "always_up_to": 10}
    assert tool_servers["weather"] == {
        "command": "npx",
        "args": ["-y", "@acme/weather@1.2.0", "--units", "metric"],
        "env": {"ACME_KEY": "${ACME_KEY}"},
        "always_up_to": 10,
    }
    told = {outcome.source: outcome.why for outcome in outcomes}
    assert told[".mcp.json old"].startswith("it speaks SSE, the transport before streamable HTTP: use")
    assert [problem.reason for problem in agent.problems if not re.search("TOKEN|ACME", problem.reason)] == []


def test_importing_again_changes_nothing_and_then_only_what_changed(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pane"
    import_into(folder, [project])
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    again = import_into(folder, [project])
    assert {outcome.became for outcome in again} == {"unchanged", "not_imported"}
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before

    (project / "CLAUDE.md").write_text("Prefer tiny commits.\n")
    changed = import_into(folder, [project])
    assert [outcome.source for outcome in changed if outcome.became == "updated"] == ["CLAUDE.md"]
    assert (folder / "rules/claude.md").read_text().endswith("Prefer tiny commits.\n")


def test_what_somebody_wrote_is_never_overwritten_unasked(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pane"
    (folder / "rules").mkdir(parents=True)
    (folder / "agent.yaml").write_text("model: echo\nmcpServers:\n  web: {url: 'http://localhost/'}\n")
    own = folder / "rules/style.md"
    own.write_text("My own style.")
    import_into(folder, [project])
    edited = folder / "rules/claude.md"
    edited.write_text(edited.read_text() + "And mine.\n")
    (project / "CLAUDE.md").write_text("Prefer tiny commits.\n")

    kept = by_source(import_into(folder, [project]))
    assert kept["CLAUDE.md"] == ("kept", "rules/claude.md")
    assert kept[".cursor/rules/style.mdc"] == ("kept", "rules/style.md")
    assert kept[".mcp.json web"] == ("kept", "agent.yaml")
    assert own.read_text() == "My own style."
    assert edited.read_text().endswith("And mine.\n")

    import_into(folder, [project], overwrite=True)
    assert edited.read_text().endswith("Prefer tiny commits.\n")


def test_a_dry_run_says_the_same_and_writes_nothing(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pane"
    dry = import_into(folder, [project], dry=True)

    assert not folder.exists()
    assert dry == import_into(folder, [project])


def test_what_holds_nothing_makes_no_agent(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing for an agent")

    assert import_into(tmp_path / "pane", [tmp_path / "notes.txt"]) == []
    assert not (tmp_path / "pane").exists()


def test_one_file_can_be_imported_alone(project: Path, tmp_path: Path) -> None:
    outcomes = import_into(tmp_path / "pane", [project / ".cursor/rules/react.mdc", project / "CLAUDE.md"])

    assert by_source(outcomes) == {
        "react.mdc": ("created", "rules/react.md"),
        "CLAUDE.md": ("created", "rules/claude.md"),
        "CLAUDE.md @../out.md": ("not_imported", ""),
        "CLAUDE.md @~/mine.md": ("not_imported", ""),
    }


def test_the_same_text_is_brought_in_once_and_the_same_name_twice(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for name, text in {
        "AGENTS.md": "Same.",
        "CLAUDE.md": "Same.\n",
        ".cursor/rules/a.mdc": "One",
        ".clinerules/a.md": "Two",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    outcomes = by_source(import_into(tmp_path / "pane", [root]))

    assert outcomes["CLAUDE.md"] == ("not_imported", "")
    assert outcomes[".clinerules/a.md"] == ("created", "rules/a.md")
    assert outcomes[".cursor/rules/a.mdc"] == ("created", "rules/a-2.md")
