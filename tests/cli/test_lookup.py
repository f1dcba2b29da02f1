import pytest

from windowpane.cli.chat.slash import is_command
from windowpane.cli.lookup import find_item, find_session
from windowpane.context.events import SessionCreated
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef, reference_ref, rule_ref, tool_ref
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError, SessionNotFoundError, UnknownItemError
from windowpane.local.pane import LocalPane
from windowpane.settings import Settings
from windowpane.wiring import open_engine

KNOWN = (rule_ref("brief"), reference_ref("api"), rule_ref("api"), tool_ref("rule", "add"), tool_ref("a:b", "c:d"))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("rule:brief", rule_ref("brief")),
        ("brief", rule_ref("brief")),
        ("reference:api", reference_ref("api")),
        ("rule:add", tool_ref("rule", "add")),
        ("a:b:c:d", tool_ref("a:b", "c:d")),
        ("rule:unheard", rule_ref("unheard")),
        ("files:read_file", tool_ref("files", "read_file")),
    ],
)
def test_an_item_is_meant_by_its_written_form_or_by_a_name_that_only_one_has(text: str, meant: ItemRef) -> None:
    assert find_item(text, KNOWN) == meant


@pytest.mark.parametrize("text", ["api", "unheard", "", ":x", "x:"])
def test_a_word_that_could_mean_several_items_or_none_is_refused(text: str) -> None:
    with pytest.raises(UnknownItemError):
        find_item(text, KNOWN)


async def test_a_session_is_meant_by_its_id_by_a_beginning_that_only_one_has_or_as_the_last() -> None:
    async with open_engine(Settings(store_url="memory:")) as engine:
        for name in ("ses_aaa", "ses_aab", "ses_b"):
            await begin(engine, name)

        pane = LocalPane(engine)
        meant = [(await find_session(pane, text)).id for text in ("ses_aaa", "ses_b", "ses_aab", "last")]
        assert meant == ["ses_aaa", "ses_b", "ses_aab", "ses_b"]
        with pytest.raises(InvalidInputError, match="2 sessions begin with 'ses_aa'"):
            await find_session(pane, "ses_aa")
        for unknown in ("ses_c", ""):
            with pytest.raises(SessionNotFoundError):
                await find_session(pane, unknown)


async def begin(engine: Engine, name: str) -> None:
    created = SessionCreated(agent="guide", owner="local", settings={}, items=())
    await engine.store.append(SessionId(name), [created], expected_seq=0)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/help", True),
        ("/add rule:x ", True),
        ("/nonsense", True),
        ("/tool notes__list_notes", False),
        ("/etc/hosts is a file", False),
        (" /help", False),
        ("hello", False),
    ],
)
def test_a_line_is_a_command_when_it_begins_with_a_slash_and_a_word(line: str, command: bool) -> None:
    assert is_command(line) is command
