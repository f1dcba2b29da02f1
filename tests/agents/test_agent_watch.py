"""A folder that is watched: every change counts from the very next look on, and without one no file is looked at."""

from __future__ import annotations

import gc
import mmap
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import anyio
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from patience import PATIENCE_S
from windowpane.agents.base import Agent
from windowpane.agents.folder import FEW_FILES, FIRST_LOOKS, AgentFolder, FolderAgents
from windowpane.agents.watch.mounts import tells_everything
from windowpane.agents.watch.watch import TRUSTED_S
from windowpane.errors import AgentNotFoundError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells nothing elsewhere")


class Clock:
    """A time that passes only when a test says so."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def passes(self) -> None:
        self.now_s += TRUSTED_S


@pytest.fixture
def told(tmp_path: Path) -> None:
    """Need a file system of which the kernel tells everything."""
    if not tells_everything(str(tmp_path), Path("/proc/self/mountinfo").read_text()):
        pytest.skip("temporary files lie on a file system that is not watched")


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("count", [1, FEW_FILES + 1])
def test_a_folder_that_did_not_change_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    agents = _watched(tmp_path, {f"rules/r{number}.md": "Text.\n" for number in range(count)})
    before = agents.current("pane")
    looks = _count_looks(monkeypatch)

    async def look() -> Agent:
        return await agents.look("pane")

    assert agents.current("pane") is before
    assert anyio.run(look) is before
    assert looks == []


def test_a_folder_is_looked_at_again_when_it_was_trusted_for_long(tmp_path: Path) -> None:
    clock = Clock()
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"}, clock)
    with (tmp_path / "pane/rules/a.md").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        agents.current("pane")
        memory[:3] = b"New"
        memory.flush()

        clock.passes()

        assert agents.current("pane").rules[0].text == "New.\n"


CHANGES: dict[str, str] = {
    "a file is written in place": "echo New. > pane/rules/a.md",
    "a file is written in place with the same size": "echo Nes. > pane/rules/a.md",
    "a file is added to": "echo More. >> pane/rules/a.md",
    "a file is cut short": "truncate -s 2 pane/rules/a.md",
    "a file is replaced as editors do it": "echo New. > pane/rules/.a.tmp && mv pane/rules/.a.tmp pane/rules/a.md",
    "a file is replaced from elsewhere": "echo New. > outside.md && mv outside.md pane/rules/a.md",
    "a file comes": "echo New. > pane/rules/b.md",
    "a file goes": "rm pane/rules/a.md",
    "a file is renamed": "mv pane/rules/a.md pane/rules/b.md",
    "a file moves out": "mv pane/rules/a.md outside.md",
    "a file is given another time": "touch -d 2001-01-01 pane/rules/a.md",
    "folders come with a file in them": "mkdir -p pane/rules/x/y && echo New. > pane/rules/x/y/z.md",
    "a folder moves in": "mkdir -p made/y && echo New. > made/y/z.md && mv made pane/rules/made",
    "a folder is renamed": "mv pane/rules/deep pane/rules/deeper",
    "a folder goes": "rm -r pane/rules/deep",
    "a file deep down is written": "echo New. > pane/rules/deep/er/d.md",
    "the first reference comes": "mkdir pane/references && echo New. > pane/references/r.md",
    "the rules go": "rm -r pane/rules",
    "the rules become a file": "rm -r pane/rules && echo New. > pane/rules",
    "the rules become a link": "mv pane/rules out && echo New. > out/b.md && ln -s ../out pane/rules",
    "the manifest is written": "echo 'description: New' > pane/agent.yaml",
    "the manifest is replaced": "echo 'description: New' > new.yaml && mv new.yaml pane/agent.yaml",
    "servers come": """echo '{"mcpServers": {"s": {"command": "s"}}}' > pane/mcp.json""",
    "the core prompt is written": "echo New. > pane/prompts/core.md",
    "a site skill comes": "mkdir pane/prompts/sites && echo New. > pane/prompts/sites/example.com.md",
    "the folder is replaced": "cp -r pane new && echo New. > new/rules/a.md && mv pane old && mv new pane",
    "the folder is made again": "rm -r pane && mkdir pane && echo 'description: New' > pane/agent.yaml",
    "the folder becomes a link": "mv pane old && echo New. > old/rules/b.md && ln -s old pane",
    "a link comes": "echo New. > outside.md && ln -s ../../outside.md pane/rules/b.md",
    "a second name comes": "echo New. > outside.md && ln outside.md pane/rules/b.md",
}


@pytest.mark.parametrize("command", CHANGES.values(), ids=list(CHANGES))
def test_a_change_by_another_process_counts_from_the_very_next_look_on(tmp_path: Path, command: str) -> None:
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n", "rules/deep/er/d.md": "Deep.\n", "prompts/core.md": "Core.\n"})
    before = agents.current("pane")

    _run(tmp_path, command)

    after = agents.current("pane")
    assert _whole(after) == _whole(AgentFolder(tmp_path / "pane").current())
    assert _whole(after) != _whole(before)


@pytest.mark.parametrize("place", ["pane/rules/a.md", "pane/rules"])
def test_what_may_not_be_read_any_more_is_reported(tmp_path: Path, place: str) -> None:
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"})

    _run(tmp_path, f"chmod 0 {place}")

    # A super-user may read it all the same.
    seen, fresh = agents.current("pane"), AgentFolder(tmp_path / "pane").current()
    (tmp_path / place).chmod(0o700)
    assert _whole(seen) == _whole(fresh)


@pytest.mark.parametrize(
    "link",
    [
        "echo Old. > outside.md && ln -s ../../outside.md pane/rules/b.md",
        "echo Old. > outside.md && ln outside.md pane/rules/b.md",
        "mkdir outside && mv pane/rules/* outside && echo Old. > outside/b.md && rmdir pane/rules"
        " && ln -s ../outside pane/rules && ln -s outside/b.md outside.md",
        "mkdir out && echo Old. > out/b.md && ln -s ../../out pane/rules/x && ln -s out/b.md outside.md",
        "mv pane elsewhere && ln -s elsewhere pane && ln -s elsewhere/rules/a.md outside.md",
    ],
    ids=["a link", "a second name", "the rules are a link", "a folder is a link", "the agent is a link"],
)
def test_a_file_that_is_written_by_another_name_is_seen(tmp_path: Path, link: str) -> None:
    clock = Clock()
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"}, clock)
    _run(tmp_path, link)
    before = agents.current("pane")
    for _ in range(3):
        clock.passes()
        assert agents.current("pane") is before

    _run(tmp_path, "echo New. > outside.md")

    after = agents.current("pane")
    assert _whole(after) == _whole(AgentFolder(tmp_path / "pane").current())
    assert "New.\n" in [rule.text for rule in after.rules]


def test_a_folder_above_that_is_replaced_is_seen(tmp_path: Path) -> None:
    for place, text in (("a", "Old.\n"), ("b", "New.\n")):
        _write(tmp_path / place / "all" / "pane", {"agent.yaml": "", "rules/r.md": text})
    agents = FolderAgents(tmp_path / "a" / "all")
    _look_often(agents, "pane")
    assert agents.current("pane").rules[0].text == "Old.\n"

    _run(tmp_path, "mv a c && mv b a")

    assert agents.current("pane").rules[0].text == "New.\n"


def test_an_agent_that_goes_is_gone_and_one_that_comes_is_there(tmp_path: Path) -> None:
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"})

    _run(tmp_path, "mv pane other")

    with pytest.raises(AgentNotFoundError):
        agents.current("pane")
    assert agents.current("other").rules[0].text == "Old.\n"


def test_agents_are_gone_when_their_folder_becomes_an_agent_itself(tmp_path: Path) -> None:
    agents = _watched(tmp_path / "all", {"rules/a.md": "Old.\n"})

    _run(tmp_path, "echo 'description: All' > all/agent.yaml")

    with pytest.raises(AgentNotFoundError):
        agents.current("pane")
    assert agents.current("all").description == "All"


@pytest.mark.usefixtures("told")
def test_what_else_lies_in_the_folder_is_no_reason_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"})
    looks = _count_looks(monkeypatch)

    _run(tmp_path, "echo Started. >> pane/server.log && mkdir pane/notes && echo x > pane/notes/n.md && echo x > x")

    agents.current("pane")
    assert looks == []


def test_a_change_is_seen_when_the_kernel_could_not_queue_all(tmp_path: Path) -> None:
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n", "agent.yaml": ""})
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    here, there = tmp_path / "pane/rules/x.txt", tmp_path / "pane/rules/y.txt"
    here.touch()

    for _ in range(most // 4 + 1):
        here.rename(there)
        there.rename(here)
    (tmp_path / "pane/agent.yaml").write_text("description: New\n")

    assert _whole(agents.current("pane")) == _whole(AgentFolder(tmp_path / "pane").current())


def test_threads_see_what_they_wrote_themselves(tmp_path: Path) -> None:
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"})
    wrong: list[str] = []

    def work(own: str) -> None:
        for number in range(40):
            (tmp_path / f"pane/rules/{own}.md").write_text(f"{own} {number}")
            rule = agents.current("pane").rule(own)
            if rule is None or rule.text != f"{own} {number}":
                wrong.append(f"{own} {number}: {rule}")

    threads = [threading.Thread(target=work, args=(own,)) for own in "bcde"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert wrong == []
    assert _whole(agents.current("pane")) == _whole(AgentFolder(tmp_path / "pane").current())


def test_processes_that_were_forked_see_every_change_each_by_itself(tmp_path: Path) -> None:
    _write(tmp_path / "pane", {"agent.yaml": "", "rules/a.md": "0"})
    (tmp_path / "forked.py").write_text(FORKED)

    ended = subprocess.run([sys.executable, "forked.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (ended.stdout.split(), ended.stderr) == ([str(number) for number in range(1, 9) for _ in range(3)], "")


FORKED = """
import os
from pathlib import Path
from windowpane.agents.folder import FolderAgents

agents = FolderAgents(Path.cwd())
file = Path("pane/rules/a.md")
assert [agents.current("pane").rules[0].text for _ in range(10)] == ["0"] * 10
asks, answers = [os.pipe() for _ in range(2)], os.pipe()
for asked, _ in asks:
    if os.fork() == 0:
        for _, ask in asks:
            os.close(ask)
        while os.read(asked, 1):
            os.write(answers[1], agents.current("pane").rules[0].text.encode())
        os._exit(0)
for number in range(1, 9):
    for _, ask in asks:
        os.write(ask, b"?")
        # Each has looked at what did not change, and watches it now.
        assert os.read(answers[0], 1) == str(number - 1).encode()
    file.write_text(str(number))
    print(agents.current("pane").rules[0].text)
    for _, ask in asks:
        os.write(ask, b"?")
        print(os.read(answers[0], 1).decode())
"""


@pytest.mark.parametrize(
    "limit",
    ["echo 0 > /proc/sys/user/max_inotify_instances", "echo 4 > /proc/sys/user/max_inotify_watches"],
    ids=["queues", "folders"],
)
def test_a_process_that_may_not_watch_looks_at_the_files(tmp_path: Path, limit: str) -> None:
    _write(tmp_path / "pane", {"agent.yaml": "", "rules/a.md": "0"})
    (tmp_path / "limited.py").write_text(LIMITED)

    ended = _unshared(tmp_path, f"{limit} && {sys.executable} limited.py")

    assert (ended.stdout.split(), ended.stderr) == (list("0123456789"), "")


LIMITED = """
from pathlib import Path
from windowpane.agents.folder import FolderAgents

agents = FolderAgents(Path.cwd())
for number in range(10):
    Path("pane/rules/a.md").write_text(str(number))
    print(agents.current("pane").rules[0].text)
"""


def test_what_is_mounted_in_a_folder_is_seen(tmp_path: Path) -> None:
    _write(tmp_path / "pane", {"agent.yaml": "", "rules/a.md": "Old."})
    (tmp_path / "mounting.py").write_text(MOUNTING)

    ended = _unshared(tmp_path, f"{sys.executable} mounting.py")

    assert (ended.stdout.splitlines(), ended.stderr) == (["['Mounted.']", "['Written.']", "['Old.']", "[]"], "")


MOUNTING = """
import subprocess
from pathlib import Path
from windowpane.agents.folder import FolderAgents

agents = FolderAgents(Path.cwd(), clock=lambda: 0.0)

def texts():
    return [rule.text for rule in agents.current("pane").rules]

assert [texts() for _ in range(10)] == [["Old."]] * 10
Path("outside.md").write_text("Mounted.")
subprocess.run(["mount", "--bind", "outside.md", "pane/rules/a.md"], check=True)
print(texts())
Path("outside.md").write_text("Written.")
print(texts())
subprocess.run(["umount", "pane/rules/a.md"], check=True)
print(texts())
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "pane/rules"], check=True)
print(texts())
"""


MOUNTS = """\
22 28 0:20 / /proc rw,nosuid - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 28 0:40 / /home/a\\040b rw shared:2 master:1 - nfs4 host:/home rw
41 28 0:41 / /data rw - fuse.sshfs host: rw
42 41 0:42 / /data/local rw - tmpfs tmpfs rw
43 28 0:43 / /srv/pane/rules/a.md rw - ext4 /dev/vda rw
"""


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("/agents/pane", True),
        ("/srv/other", True),
        ("/srv/pane", False),
        ("/home/a b/agents", False),
        ("/home/a bc/agents", True),
        ("/data/pane", False),
        ("/data/local/pane", False),
        ("/data", False),
    ],
)
def test_only_what_this_machine_alone_writes_to_is_watched(folder: str, told: bool) -> None:
    assert tells_everything(folder, MOUNTS) is told


@pytest.mark.usefixtures("told")
def test_closed_agents_hold_nothing_and_are_still_current(tmp_path: Path) -> None:
    gc.collect()
    before = _queues()
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"})
    while_open = _queues()

    agents.close()

    assert (while_open - before, _queues() - before) == (1, 0)
    (tmp_path / "pane/rules/a.md").write_text("New.\n")
    assert agents.current("pane").rules[0].text == "New.\n"


@pytest.mark.usefixtures("told")
def test_forgotten_agents_hold_nothing(tmp_path: Path) -> None:
    gc.collect()
    before = _queues()
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"})
    assert _queues() == before + 1

    del agents
    gc.collect()

    assert _queues() == before


@pytest.mark.usefixtures("told")
def test_an_agent_that_is_gone_is_not_watched(tmp_path: Path) -> None:
    gc.collect()
    agents = _watched(tmp_path, {"rules/a.md": "Old.\n"})
    before = _watches()
    _write(tmp_path / "other", {"agent.yaml": "", "rules/deep/b.md": "Other.\n"})
    _look_often(agents, "other")
    assert _watches() > before

    shutil.move(tmp_path / "other", tmp_path / ".trash")
    agents.current("pane")

    assert _watches() == before


NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["", "One.\n", "Two.\n", "---\npriority: 3\n---\nThree.\n", "---\n: [\n---\n", "\ud800"])
FILES = st.sampled_from(
    [
        "agent.yaml",
        "mcp.json",
        "prompts/core.md",
        "prompts/sites/a.com.md",
        "rules/a.md",
        "rules/b.md",
        "rules/x/a.md",
        "rules/x/y/a.md",
        "rules/x/y/note.txt",
        "references/a.md",
        "references/x/b.md",
    ]
)
FOLDERS = st.sampled_from(["prompts", "prompts/sites", "rules", "rules/x", "rules/x/y", "references", "references/x"])


class AnyChange(RuleBasedStateMachine):
    """After any change to a real folder, its watched agent is what a fresh look at it says. No time passes."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(mkdtemp()).resolve()
        self.clock = Clock()
        self.folder = self.root / "agents" / "pane"
        _write(self.folder, {"agent.yaml": "description: A\n", "rules/a.md": "One.\n"})
        self.agents = FolderAgents(self.root / "agents", clock=self.clock)

    @rule(file=FILES, text=TEXTS)
    def write(self, file: str, text: str) -> None:
        self._do(lambda path: path.write_bytes(text.encode("utf-8", "surrogatepass")), file)

    @rule(file=FILES, text=TEXTS)
    def replace(self, file: str, text: str) -> None:
        new = self.root / "new"
        new.write_bytes(text.encode("utf-8", "surrogatepass"))
        self._do(new.rename, file)

    @rule(file=FILES)
    def delete(self, file: str) -> None:
        self._do(Path.unlink, file)

    @rule(file=FILES, other=FILES)
    def rename(self, file: str, other: str) -> None:
        self._do(lambda path: path.rename(self.folder / other), file)

    @rule(folder=FOLDERS, other=FOLDERS)
    def rename_folder(self, folder: str, other: str) -> None:
        self._do(lambda path: path.rename(self.folder / other), folder)

    @rule(folder=FOLDERS)
    def delete_folder(self, folder: str) -> None:
        self._do(shutil.rmtree, folder)

    @rule(folder=FOLDERS)
    def take_out_and_write(self, folder: str) -> None:
        """Move a folder away, change a file in it, and move it back."""
        away = self.root / "away"

        def take(path: Path) -> None:
            path.rename(away)
            (away / "c.md").write_text("Written outside.\n")
            away.rename(path)

        self._do(take, folder)

    @rule(file=FILES)
    def link(self, file: str) -> None:
        outside = self.root / "outside.md"
        outside.write_text("Linked.\n")
        self._do(lambda path: path.symlink_to(outside), file)

    @rule(file=FILES)
    def second_name(self, file: str) -> None:
        self._do(lambda path: (self.root / "second.md").hardlink_to(path), file)
        # Nothing tells that a file was given a second name outside: this is seen a little later.
        self.clock.passes()

    @rule(text=TEXTS, name=st.sampled_from(["outside.md", "second.md"]))
    def write_outside(self, text: str, name: str) -> None:
        (self.root / name).write_bytes(text.encode("utf-8", "surrogatepass"))

    @rule(folder=FOLDERS)
    def link_folder(self, folder: str) -> None:
        outside = self.root / "outside"
        outside.mkdir(exist_ok=True)
        (outside / "b.md").write_text("In a linked folder.\n")
        self._do(lambda path: path.symlink_to(outside), folder)

    @rule(text=TEXTS)
    def write_in_linked_folder(self, text: str) -> None:
        file = self.root / "outside" / "b.md"
        if file.parent.exists():
            file.write_bytes(text.encode("utf-8", "surrogatepass"))

    @rule()
    def make_again(self) -> None:
        shutil.rmtree(self.folder)
        _write(self.folder, {"agent.yaml": "description: Made again\n", "references/a.md": "New.\n"})

    @rule()
    def swap(self) -> None:
        other = self.root / "agents" / "other"
        if not other.exists():
            _write(other, {"agent.yaml": "description: The other\n", "rules/c.md": "Other.\n"})
        self.folder.rename(self.root / "agents" / "away")
        other.rename(self.folder)
        (self.root / "agents" / "away").rename(other)

    @rule()
    def move_all(self) -> None:
        (self.root / "agents").rename(self.root / "moved")
        shutil.copytree(self.root / "moved", self.root / "agents", symlinks=True)
        shutil.rmtree(self.root / "moved")

    @rule()
    def wait(self) -> None:
        self.clock.passes()

    @rule()
    def close(self) -> None:
        self.agents.close()

    @invariant()
    def says_what_a_fresh_look_says(self) -> None:
        if os.path.lexists(self.folder / "agent.yaml"):
            assert _whole(self.agents.current("pane")) == _whole(AgentFolder(self.folder).current())
            _look_often(self.agents, "pane")
        else:
            with pytest.raises(AgentNotFoundError):
                self.agents.current("pane")

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    def _do(self, change: Callable[[Path], object], at: str) -> None:
        path = self.folder / at
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            change(path)
        except OSError:
            # Not possible as things are: nothing there, or something else in the way.
            return


TestAnyChange = AnyChange.TestCase


def _watched(root: Path, files: dict[str, str], clock: Clock | None = None) -> FolderAgents:
    """Return agents of which `pane` has been looked at so often that it is watched."""
    _write(root / "pane", {"agent.yaml": "description: Old\n", **files})
    agents = FolderAgents(root, clock=clock or Clock())
    _look_often(agents, "pane")
    return agents


def _look_often(agents: FolderAgents, name: str) -> None:
    """Look at an agent until it is watched."""
    for _ in range(FIRST_LOOKS + 1):
        agents.current(name)


def _write(folder: Path, files: dict[str, str]) -> None:
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _run(folder: Path, command: str) -> None:
    subprocess.run(["sh", "-ec", command], cwd=folder, check=True, timeout=PATIENCE_S)


def _unshared(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may mount, and may change limits, for itself alone."""
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets no process have mounts of its own")
    return subprocess.run(
        [*alone, "sh", "-ec", command], cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def _whole(agent: Agent) -> tuple[Agent, object]:
    """Return an agent with what is not compared otherwise: its files and their times."""
    return agent, agent.files


def _count_looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    looks: list[str] = []
    look = os.lstat

    def counted(path: str) -> os.stat_result:
        looks.append(path)
        return look(path)

    monkeypatch.setattr(os, "lstat", counted)
    return looks


def _queues() -> int:
    """Return how many queues of the kernel this process has."""
    return len(_open_queues())


def _watches() -> int:
    """Return how many folders this process watches."""
    return sum(Path(f"/proc/self/fdinfo/{number}").read_text().count("inotify wd:") for number in _open_queues())


def _open_queues() -> list[str]:
    return [opened.name for opened in Path("/proc/self/fd").iterdir() if _target(opened) == "anon_inode:inotify"]


def _target(opened: Path) -> str:
    try:
        return str(opened.readlink())
    except FileNotFoundError:
        # It was the list itself.
        return ""
