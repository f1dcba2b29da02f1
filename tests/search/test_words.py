import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import product
from math import log
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.items import Item, Reference, Rule, Tool
from windowpane.search.documents import document
from windowpane.search.words import (
    FIELD_WEIGHT,
    HALF_WAY,
    LENGTH_WEIGHT,
    SATURATION,
    USUAL_DOCUMENTS,
    Field,
    WordPool,
    Words,
    words,
)


def scores(query: str, *items: Item) -> list[float]:
    return Words(WordPool([document(item) for item in items])).scores([(query, 1.0)]).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", ["get", "user", "id", "getuserbyid"]),
        ("read_file", ["read", "file"]),
        ("Resizing images, please!", ["resiz", "imag"]),
        ("what is it", []),
        ("Größe 設定", ["größe", "設定"]),
        ("查询天气", ["查询", "询天", "天气"]),
        ("用PDF导出", ["用", "pdf", "导出"]),
        ("雨", ["雨"]),
        ("アラームを設定してください", ["アラ", "ラー", "ーム", "ムを", "を設", "設定", "定し"]),
        ("날씨 알려줘", ["날씨", "알려", "려줘"]),
        ("ที่ดี", ["ที", "ี่", "่ด", "ดี"]),
        ("ＰＤＦ", ["pdf"]),
    ],
)
def test_texts_are_read_as_stems_with_names_split(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("german", "die Besichtigungen der Häuser", ["besicht", "haus"]),
        ("dutch", "de openingstijden van het museum", ["openingstijd", "museum"]),
        ("italian", "calcola l'area dell'immobile", ["calcol", "are", "immobil"]),
        ("russian", "добавить новые правила", ["добав", "нов", "прав"]),
        ("hebrew", "ללא גזע", ["ללא", "גזע"]),
    ],
)
def test_words_of_another_language_are_reduced_to_its_own_stems(language: str, text: str, expected: list[str]) -> None:
    assert words(text, language) == expected


def test_texts_that_are_read_in_several_threads_at_once_give_the_same_words() -> None:
    endings = ("ing", "ation", "ational", "fulness", "ities", "ization")
    texts = [f"{a}{b}configur{ending}" for a, b in product(ascii_lowercase, repeat=2) for ending in endings]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(words, texts))
    finally:
        sys.setswitchinterval(usual)

    stem = import_module("snowballstemmer").stemmer("english").stemWord
    assert found == [[stem(text)] for text in texts]


@pytest.mark.spec("S1.105")
def test_a_document_that_shares_words_with_the_query_scores_above_one_that_does_not() -> None:
    shared, other = scores("resize an image", Tool("s", "resize_image"), Tool("s", "send_mail"))

    assert shared > other == 0.0


def test_a_word_in_the_name_counts_more_than_one_in_the_text() -> None:
    in_name, in_text, _ = scores("caching", Rule("caching", "Be quick."), Rule("speed", "Use caching."), Rule("x", "y"))

    assert in_name > in_text > 0


def test_the_name_of_a_server_is_evidence_for_its_tools() -> None:
    ours, other = scores("open a jira ticket", Tool("jira", "create_issue"), Tool("mail", "create_draft"))

    assert ours > other == 0.0


def test_scores_lie_between_0_and_1_and_a_rare_word_weighs_more_than_a_common_one() -> None:
    items = [Reference("zebra", "common"), *(Reference(f"r{i}", "common words") for i in range(50))]

    rare = scores("zebra", *items)
    common = scores("common", *items)

    assert 0 < max(common) < max(rare) < 1


def test_a_query_without_a_known_word_scores_nothing() -> None:
    assert scores("the of and", Rule("a", "b")) == [0.0]
    assert scores("unheard", Rule("a", "b")) == [0.0]


def test_a_chinese_message_finds_the_item_that_speaks_of_the_same() -> None:
    weather, mail = Tool("s", "get_weather", "查询指定城市的天气预报。"), Tool("s", "send_mail", "发送电子邮件。")

    found, other = scores("明天北京的天气怎么样？", weather, mail)

    assert found > other == 0.0


def test_other_forms_of_a_word_are_found_in_the_language_of_the_items() -> None:
    viewing = Tool("s", "schedule_visit", "Vereinbart für den Käufer die Besichtigung eines Hauses.")
    alarm = Tool("s", "add_alarm", "Stellt einen neuen Wecker mit einer Uhrzeit.")

    found, other = scores("Bitte zwei Besichtigungen der Häuser vereinbaren", viewing, alarm)

    assert found > other == 0.0


def test_a_compound_is_found_by_its_parts_and_the_parts_by_the_compound() -> None:
    concert = Tool("s", "find_event", "Findet ein Konzert in der Nähe.")
    currency = Tool("s", "convert", "Der Währungsrechner für das Ausland.")

    assert [score > 0 for score in scores("Gibt es hier ein Rockkonzert?", concert, currency)] == [True, False]
    assert [score > 0 for score in scores("Welche Währung hat das Land?", concert, currency)] == [False, True]


def test_items_in_several_languages_are_each_found_in_their_own() -> None:
    german = Rule("a", "Antworte auf die Fragen der Kunden immer höflich.")
    english = Rule("b", "Answer all questions of the customers politely.")

    assert [score > 0 for score in scores("Was tun bei einer Frage des Kunden?", german, english)] == [True, False]
    assert [score > 0 for score in scores("How do I answer a customer's question?", german, english)] == [False, True]


SOME_WORDS = ("crop", "image", "resize", "photo", "upload", "mail", "invoice")
SAID = st.lists(st.sampled_from(SOME_WORDS), max_size=8).map(" ".join)
RULES = st.builds(Rule, st.lists(st.sampled_from(SOME_WORDS), min_size=1, max_size=3).map("-".join), SAID, SAID)


@given(st.lists(RULES, min_size=1, max_size=8), SAID, SAID, st.floats(0.05, 1))
def test_a_score_is_the_sum_over_the_words_in_their_order_to_the_bit(
    rules: list[Rule], message: str, earlier: str, share: float
) -> None:
    fields: list[dict[Field, list[str]]] = [
        {"name": words(rule.name), "description": words(rule.description), "text": words(rule.text)} for rule in rules
    ]
    means = {field: max(sum(len(one[field]) for one in fields) / len(fields), 1e-9) for field in fields[0]}

    def weight(one: dict[Field, list[str]], word: str) -> float:
        tf = 0.0
        for field, found in one.items():
            b = LENGTH_WEIGHT[field]
            tf += FIELD_WEIGHT[field] / (1 - b + b * len(found) / means[field]) * found.count(word)
        return tf / (tf + SATURATION)

    def plain(one: dict[Field, list[str]]) -> float:
        evidence = 0.0
        for word in sorted({*words(message), *words(earlier)}):
            having = sum(weight(other, word) > 0 for other in fields)
            rarity = log(1 + (USUAL_DOCUMENTS - having + 0.5) / (having + 0.5))
            wanted = (word in words(message)) + share * (word in words(earlier))
            evidence += wanted * rarity * weight(one, word)
        return evidence / (evidence + HALF_WAY)

    found = Words(WordPool([document(rule) for rule in rules])).scores([(message, 1.0), (earlier, share)])

    assert found.tolist() == [plain(one) for one in fields]
