"""An agent's folder: what it says, what is wrong with it, and that it is always current."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from patience import PATIENCE_S
from windowpane.agents.agent import WRITE_CORE
from windowpane.agents.base import Agent, Prompts
from windowpane.agents.folder import AgentFolder, FolderAgents
from windowpane.context.agents import AgentSettings, Problem
from windowpane.context.items import Reference, Rule
from windowpane.errors import AgentNotFoundError
from windowpane.search.settings import search_settings

MOMENT = 1_700_000_000
VERSION = "2023-11-14T22:13:20Z"


@pytest.mark.spec("S0.1", "S0.10", "S1.5")
def test_a_folder_says_what_is_available(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {
            "agent.yaml": "questions: [How?, Why so?]\ndescription: A test\n"
            "model: openai:gpt-5\ntemperature: 0.2\ntop_p: 1\n"
            "max_output_tokens: 100\nmax_chat_turns: 3\ntool_permission: never\nmode: thinking\ncontext_window: 8000\n"
            "search: {preset: normal, tools: {top_n: 3}}\n",
            "prompts/core.md": "You are a test.\n",
            "prompts/default_site.md": "Any site.\n",
            "prompts/sites/sec.gov.md": "Filings.\n",
            "rules/b.md": "---\npriority: 10\ninclude: always\n---\nSecond.\n",
            "rules/deep/er/a.md": "---\npriority: 10\nenabled: false\n---\nFirst.\n",
            "rules/c.md": "---\npriority: 9\n---\nThe most important.\n",
            "references/r.md": "---\nrelated: [s]\n---\n# All about R\n",
            "references/s.md": "",
        },
    )

    agent = AgentFolder(folder).current()

    assert agent == Agent(
        name=folder.name,
        folder=str(folder),
        description="A test",
        questions=("How?", "Why so?"),
        settings=AgentSettings(
            model="openai:gpt-5",
            temperature=0.2,
            top_p=1.0,
            max_output_tokens=100,
            max_chat_turns=3,
            tool_permission="never",
            mode="thinking",
            context_window=8000,
            search={"preset": "normal", "tools": {"top_n": 3}},
        ),
        rules=(
            Rule("c", "The most important.\n", priority=9, version=VERSION),
            Rule("a", "First.\n", priority=10, enabled=False, version=VERSION),
            Rule("b", "Second.\n", priority=10, include="always", version=VERSION),
        ),
        references=(
            Reference("r", "# All about R\n", related=("s",), title="All about R", version=VERSION),
            Reference("s", "", title="s", version=VERSION),
        ),
        prompts=Prompts(core="You are a test.\n", default_site="Any site.\n", sites={"sec.gov": "Filings.\n"}),
    )


def test_broken_files_are_reported_and_the_others_keep_working(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {
            "agent.yaml": "",
            "prompts/core.md": "Core.",
            "rules/good.md": "Good.",
            "rules/bad-yaml.md": "---\nname: x\ndescription: [a\n---\n",
            "rules/never-ends.md": "---\nname: x\n",
            "rules/Name with spaces.md": "text",
            "rules/notes.txt": "text",
            "rules/.hidden.md": "---\n",
            "rules/backup.md~": "---\n",
            "references/related.md": "---\nrelated:\n  - good\n  - gone\n---\n",
            "references/titled.md": "---\ntitle: All of it\nrelated: [A Titled One, All of it, good]\n---\n",
            "references/title-only.md": "# A Titled One\n",
        },
    )
    (folder / "rules" / "latin.md").write_bytes(b"---\nname: x\n---\ncaf\xe9\n")
    (folder / "rules" / "large.md").write_bytes(b"x" * (1024 * 1024 + 1))
    (folder / "rules" / "largest.md").write_bytes(b"x" * 1024 * 1024)
    (folder / "rules" / "nowhere.md").symlink_to("gone.md")
    (folder / "rules" / "itself.md").symlink_to("itself.md")
    (folder / "rules" / "around").symlink_to(folder / "rules")
    os.mkfifo(folder / "rules" / "pipe.md")
    (folder / "references" / "good.md").symlink_to(folder / "rules" / "good.md")
    (folder / "prompts" / "cor.md").write_text("x")

    agent = AgentFolder(folder).current()

    assert [rule.name for rule in agent.rules] == ["good", "largest"]
    assert [(reference.name, reference.related) for reference in agent.references] == [
        ("good", ()),
        ("related", ("good", "gone")),
        ("title-only", ()),
        ("titled", ("title-only", "titled", "good")),
    ]
    assert [(problem.file, problem.line, problem.reason.partition(":")[0]) for problem in agent.problems] == [
        ("prompts/cor.md", None, "not read"),
        ("references/related.md", 4, "related names 'gone', and there is no such reference"),
        ("rules/Name with spaces.md", None, "the name 'Name with spaces' may hold only letters, digits, _ and -"),
        ("rules/around", None, "not followed"),
        ("rules/bad-yaml.md", 4, "not valid YAML"),
        ("rules/itself.md", None, "cannot be read"),
        ("rules/large.md", None, "not read"),
        ("rules/latin.md", 4, "not UTF-8 text; save the file as UTF-8"),
        ("rules/never-ends.md", 1, "front matter begins here and no second line of --- ends it"),
        ("rules/notes.txt", None, "not read"),
        ("rules/nowhere.md", None, "cannot be read"),
        ("rules/pipe.md", None, "not read"),
    ]


def test_two_items_of_one_kind_and_name_are_reported_and_the_first_file_is_used(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {
            "agent.yaml": "",
            "prompts/core.md": "Core.",
            "rules/a.md": "First.",
            "rules/b.md": "---\ninclude: always\nname: a\n---\nSecond.",
            "references/a.md": "Another kind.",
        },
    )

    agent = AgentFolder(folder).current()

    assert [(rule.name, rule.text) for rule in agent.rules] == [("a", "First.")]
    assert [reference.name for reference in agent.references] == ["a"]
    assert agent.problems == (
        Problem(file="rules/b.md", line=3, reason="not used: rules/a.md is already the rule named 'a'"),
    )


def test_a_missing_or_empty_core_prompt_is_a_problem_that_says_what_to_write(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"agent.yaml": ""})
    agents = AgentFolder(folder)

    missing = agents.current()
    _write(folder, "prompts/core.md", " \n")
    empty = agents.current()

    assert (missing.prompts, missing.problems) == (
        Prompts(),
        (Problem(file="prompts/core.md", line=None, reason=WRITE_CORE),),
    )
    assert (empty.prompts, empty.problems) == (
        Prompts(),
        (Problem(file="prompts/core.md", line=None, reason="the file has no text"),),
    )


def test_a_site_skill_is_found_by_its_file_name_or_by_the_hosts_it_names(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {
            "agent.yaml": "",
            "prompts/core.md": "---\ndescription: who\n---\nCore.",
            "prompts/sites/SEC.gov.md": "A",
            "prompts/sites/news.md": "---\nhosts: [Bücher.example., 127.0.0.1]\n---\nB",
            "prompts/sites/other.md": "---\nhosts:\n  - sec.gov\n  - x.org\n---\nC",
            "prompts/sites/wrong.md": "---\nhosts:\n  - x.org\n  - https://y.org/\n---\nD",
            "prompts/sites/wild.md": "---\nhosts: ['*.y.org']\n---\nE",
        },
    )

    agent = AgentFolder(folder).current()

    assert agent.prompts == Prompts(
        core="Core.", sites={"sec.gov": "A", "xn--bcher-kva.example": "B", "127.0.0.1": "B", "x.org": "C"}
    )
    assert agent.problems == (
        Problem(
            file="prompts/sites/other.md",
            line=3,
            reason="not used for sec.gov: prompts/sites/SEC.gov.md is already the skill for that host",
        ),
        Problem(
            file="prompts/sites/wild.md",
            line=2,
            reason="'*.y.org' is not a host; write it plainly, such as example.org",
        ),
        Problem(
            file="prompts/sites/wrong.md",
            line=4,
            reason="'https://y.org/' is not a host; write it plainly, such as example.org",
        ),
    )


def test_settings_that_cannot_be_read_have_their_defaults_and_tool_calls_then_wait(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        {
            "agent.yaml": "name: other\nmodel: [a]\ntemperature: 3\nmax_chat_turns: 0\nmode: fast\n"
            "tool_permission: alwyas\nsearch: off\nmcpservers: {}\ncontext_window: big\ndescription: Kept\n",
            "prompts/core.md": "Core.",
        },
    )

    agent = AgentFolder(folder).current()

    assert (agent.description, agent.settings) == ("Kept", AgentSettings(tool_permission="always"))
    assert [(problem.line, problem.reason) for problem in agent.problems] == [
        (1, f"the agent is named {folder.name!r} after its folder; rename the folder instead"),
        (2, "model must be a text, not a list"),
        (3, "temperature must be a number from 0 to 2, not 3"),
        (4, "max_chat_turns must be a whole number from 1 to 10000, not 0"),
        (5, "mode must be normal, thinking or research, not fast"),
        (6, "tool_permission must be always, never or tool, not alwyas"),
        (7, "search must be a table of names and values, not a text"),
        (8, "mcpservers is not known and has no effect; did you mean mcpServers?"),
        (9, "context_window must be a whole number from 1 to 100000000, not big"),
    ]


@pytest.mark.spec("S1.100")
@pytest.mark.parametrize(
    ("search", "line", "reason"),
    [
        ("top_n: 3\n  top_k: many", 3, "search.top_k: must be a number between 0 and 1000, not 'many'"),
        ("tools:\n    floor: 7", 3, "search.tools.floor: must be a number between 0 and 1, not 7"),
    ],
)
def test_a_search_that_cannot_be_used_is_reported_and_has_its_defaults(
    tmp_path: Path, search: str, line: int, reason: str
) -> None:
    _folder(tmp_path, {"agent.yaml": f"search:\n  {search}\nmode: thinking\n", "prompts/core.md": "Core."})

    agent = FolderAgents(tmp_path, check_search=search_settings).current("agent")

    assert agent.settings == AgentSettings(mode="thinking")
    assert agent.problems == (
        Problem(file="agent.yaml", line=line, reason=f"{reason}; until then all of search has its defaults"),
    )


@pytest.mark.parametrize("content", [b"model: [", b"- a list\n", b"model: \xff\n"])
def test_an_agent_whose_manifest_is_broken_still_exists(tmp_path: Path, content: bytes) -> None:
    folder = _folder(tmp_path, {"prompts/core.md": "Core.", "rules/a.md": "A", "mcp.json": '{"mcpServers": {}}'})
    (folder / "agent.yaml").write_bytes(content)

    agent = FolderAgents(tmp_path).current("agent")

    assert agent.settings == AgentSettings(tool_permission="always")
    assert [rule.name for rule in agent.rules] == ["a"]
    assert [problem.file for problem in agent.problems] == ["agent.yaml"]


def test_edits_additions_renames_and_deletions_count_from_the_next_call_on(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"agent.yaml": "model: a\n", "prompts/core.md": "Core.", "rules/a.md": "one"})
    agents = FolderAgents(tmp_path)
    seen = [_texts(agents)]

    (folder / "rules" / "a.md").write_text("two")
    seen.append(_texts(agents))
    (folder / "rules" / "b.md").write_text("new")
    seen.append(_texts(agents))
    (folder / "rules" / "b.md").rename(folder / "rules" / "c.md")
    seen.append(_texts(agents))
    (folder / "rules" / "a.md").unlink()
    seen.append(_texts(agents))
    (folder / "agent.yaml").write_text("model: b\n")
    (folder / "prompts" / "core.md").unlink()
    after = agents.current("agent")

    assert seen == [{"a": "one"}, {"a": "two"}, {"a": "two", "b": "new"}, {"a": "two", "c": "new"}, {"c": "new"}]
    assert (after.settings.model, after.prompts.core) == ("b", None)


def test_an_edit_that_leaves_size_and_time_as_they_were_is_seen(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"agent.yaml": "", "prompts/core.md": "Core.", "rules/a.md": "one"})
    agents, path = FolderAgents(tmp_path), folder / "rules" / "a.md"

    seen: list[Mapping[str, str]] = []
    for text in ("one", "two", "six", "ten"):
        path.write_text(text)
        os.utime(path, (MOMENT, MOMENT))
        seen.append(_texts(agents))

    assert seen == [{"a": "one"}, {"a": "two"}, {"a": "six"}, {"a": "ten"}]


def test_a_file_that_breaks_is_absent_and_reported_until_it_heals(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"agent.yaml": "", "prompts/core.md": "Core.", "rules/a.md": "---\nname: a\n---\nA"})
    agents, path = FolderAgents(tmp_path), folder / "rules" / "a.md"

    whole = agents.current("agent")
    path.write_text("---\nname: a\n-")
    half = agents.current("agent")
    path.write_text("---\nname: a\n---\nA")
    healed = agents.current("agent")

    assert ([rule.name for rule in whole.rules], len(whole.problems)) == (["a"], 0)
    assert ([rule.name for rule in half.rules], len(half.problems)) == ([], 1)
    assert ([rule.name for rule in healed.rules], len(healed.problems)) == (["a"], 0)


def test_an_unchanged_folder_gives_the_very_same_value(tmp_path: Path) -> None:
    _folder(tmp_path, {"agent.yaml": "", "prompts/core.md": "Core.", "rules/a.md": "A"})
    agents = FolderAgents(tmp_path)

    first, second = agents.current("agent"), agents.current("agent")

    assert first is second


def test_the_version_of_an_item_is_the_time_of_its_file(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"agent.yaml": "", "prompts/core.md": "Core.", "rules/a.md": "A"})
    agents = FolderAgents(tmp_path)

    before = agents.current("agent").rules
    os.utime(folder / "rules" / "a.md", (MOMENT + 1, MOMENT + 1))
    after = agents.current("agent").rules

    assert [rule.version for rule in (*before, *after)] == [VERSION, "2023-11-14T22:13:21Z"]


def test_agents_are_the_folders_that_have_a_manifest(tmp_path: Path) -> None:
    for name in ("b", "a", "no-agent/nested", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("b", "a", "no-agent/nested", ".hidden"):
        (tmp_path / name / "agent.yaml").touch()
    agents = FolderAgents(tmp_path)

    assert agents.names() == ("a", "b")
    assert [agents.current(name).name for name in agents.names()] == ["a", "b"]
    for name in ("c", "", ".", "..", ".hidden", "no-agent", "no-agent/nested", "a/", "a\0", "x" * 5000):
        with pytest.raises(AgentNotFoundError, match=r"available: a, b"):
            agents.current(name)


def test_agents_come_and_go_while_the_program_runs(tmp_path: Path) -> None:
    agents = FolderAgents(tmp_path / "agents")
    before = agents.names()

    folder = _folder(tmp_path / "agents", {"agent.yaml": "description: here\n", "prompts/core.md": "Core."})
    there = (agents.names(), agents.current("agent").description)
    (folder / "agent.yaml").unlink()

    assert (before, there, agents.names()) == ((), (("agent",), "here"), ())
    with pytest.raises(AgentNotFoundError):
        agents.current("agent")


def test_a_folder_that_is_an_agent_itself_is_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _folder(tmp_path, {"agent.yaml": "", "prompts/core.md": "Core.", "sub/agent.yaml": ""})
    monkeypatch.chdir(folder)
    agents = FolderAgents(Path())

    assert (agents.names(), agents.current("agent").folder) == (("agent",), str(folder))
    with pytest.raises(AgentNotFoundError):
        agents.current("sub")


def test_threads_that_read_while_files_change_see_only_whole_files(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path, {"agent.yaml": "", "prompts/core.md": "Core."} | {f"rules/r{n}.md": "0" for n in range(20)}
    )
    agents = FolderAgents(tmp_path)
    stop, odd = threading.Event(), list[object]()

    def read() -> None:
        while not stop.is_set():
            agent = agents.current("agent")
            if agent.problems or [rule.name for rule in agent.rules] != sorted(f"r{n}" for n in range(20)):
                odd.append(agent)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for round_number in range(1, 30):
        for n in range(20):
            beside = folder / "new"
            beside.write_text(f"{round_number}")
            beside.rename(folder / "rules" / f"r{n}.md")
    stop.set()
    for thread in threads:
        thread.join(timeout=PATIENCE_S)

    assert odd == []
    assert {rule.text for rule in agents.current("agent").rules} == {"29"}


def test_a_file_where_a_folder_should_be_is_reported(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"agent.yaml": "", "prompts/core.md": "Core.", "rules": "one, two"})

    assert AgentFolder(folder).current().problems == (
        Problem(file="rules", line=None, reason="cannot be read: Not a directory"),
    )


def test_file_names_that_are_not_text_can_still_be_reported(tmp_path: Path) -> None:
    folder = _folder(tmp_path, {"agent.yaml": "", "prompts/core.md": "Core.", "rules/a.md": "A"})
    Path(os.fsdecode(os.fsencode(folder / "rules") + b"/caf\xe9.md")).write_text("text")

    agent = AgentFolder(folder).current()

    assert [rule.name for rule in agent.rules] == ["a"]
    assert [problem.file for problem in agent.problems] == ["rules/caf\ufffd.md"]


def _folder(root: Path, files: Mapping[str, str]) -> Path:
    folder = root / "agent"
    for file, text in files.items():
        _write(folder, file, text)
    return folder


def _write(folder: Path, file: str, text: str) -> None:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    os.utime(path, (MOMENT, MOMENT))


def _texts(agents: FolderAgents) -> dict[str, str]:
    return {rule.name: rule.text for rule in agents.current("agent").rules}
