import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.context.items import ItemRef, Tool, tool_ref
from windowpane.tools.names import name_map, offer, offered_name

PROVIDERS_TAKE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

blurry = st.text(alphabet="aB_-1:é ", min_size=0, max_size=6)
any_name = st.one_of(blurry, st.text(max_size=80), st.text(alphabet=st.characters(), min_size=60, max_size=70))
refs = st.lists(st.builds(tool_ref, any_name, any_name), max_size=30)


def test_a_plain_name_is_server_and_tool_with_two_underscores_between() -> None:
    names = offer([Tool("filesystem", "read_file"), Tool("my-db", "query")])

    assert dict(names.refs) == {
        "filesystem__read_file": tool_ref("filesystem", "read_file"),
        "my-db__query": tool_ref("my-db", "query"),
    }


@pytest.mark.spec("S0.42")
def test_an_underscore_does_not_break_the_routing() -> None:
    pairs = [("a_b", "c"), ("a", "b_c"), ("a", "_b"), ("a_", "b"), ("a__b", "c"), ("a", "b__c"), ("a", "c")]

    names = offer([Tool(server, name) for server, name in pairs])

    assert {names.refs[names.names[tool_ref(*pair)]] for pair in pairs} == {tool_ref(*pair) for pair in pairs}
    assert [names.names[tool_ref(*pair)] for pair in pairs[:2]] == ["a_b__c", "a__b_c"]


def test_names_that_providers_do_not_take_stay_readable_and_end_in_a_digest() -> None:
    odd = [("Wetter Dienst", "größe: °C"), ("1password", "get"), ("日本", "天気"), ("s", "t" * 70), ("", "")]

    offered = [offered_name(tool_ref(*pair)) for pair in odd]

    assert [re.sub(r"_[a-z2-7]{8}$", "_#", name) for name in offered] == [
        "Wetter_Dienst_groe_C_#",
        "t_1password_get_#",
        "t_#",
        f"s_{'t' * 53}_#",
        "t_#",
    ]


def test_names_that_differ_only_in_case_are_different_names() -> None:
    assert offered_name(tool_ref("Files", "read")) == "Files__read"
    assert offered_name(tool_ref("files", "READ")) == "files__READ"


@settings(deadline=None)
@given(refs)
def test_every_name_is_one_that_providers_take_and_leads_back_to_its_tool(tools: list[ItemRef]) -> None:
    names = name_map(tools)

    assert {ref: names.refs[name] for ref, name in names.names.items()} == {ref: ref for ref in tools}
    assert {name: names.names[ref] for name, ref in names.refs.items()} == {name: name for name in names.refs}
    assert [name for name in names.refs if not PROVIDERS_TAKE.fullmatch(name)] == []


@settings(deadline=None)
@given(refs)
def test_names_do_not_depend_on_the_order_or_on_the_other_tools(tools: list[ItemRef]) -> None:
    assert dict(name_map(tools).names) == dict(name_map(tools[::-1]).names)
    assert dict(name_map(tools).names) == {ref: offered_name(ref) for ref in tools}


@settings(deadline=None)
@given(refs)
def test_tools_whose_digests_meet_get_their_whole_digest(tools: list[ItemRef]) -> None:
    names = name_map(tools, digest_letters=1)

    assert len(names.refs) == len(set(tools))
    assert [name for name in names.refs if not PROVIDERS_TAKE.fullmatch(name)] == []
