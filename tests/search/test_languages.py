import pytest

from windowpane.search.languages import composed, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I add a rule?", "english"),
        ("Wie füge ich eine Regel hinzu?", "german"),
        ("Hoe voeg ik een regel toe aan mijn agent?", "dutch"),
        ("Come aggiungo una regola al mio agente?", "italian"),
        ("Comment ajouter une règle à mon agent ?", "french"),
        ("¿Cómo puedo añadir una regla a mi agente?", "spanish"),
        ("Como posso adicionar uma regra ao meu agente?", "portuguese"),
        ("Как мне добавить правило?", "russian"),
        ("如何添加规则？", "chinese"),
        ("ルールを追加するにはどうすればいいですか？", "japanese"),
        ("東京で会議を予約して", "japanese"),
        ("규칙을 어떻게 추가하나요?", "korean"),
        ("ฉันจะเพิ่มกฎได้อย่างไร", "thai"),
        ("كيف أضيف قاعدة؟", "arabic"),
        ("Πώς προσθέτω έναν κανόνα;", "greek"),
    ],
)
def test_a_language_shows_in_its_script_or_its_little_words(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12:30",
        "PostgreSQL",
        "num_results",
        "flights Los Angeles Rio de Janeiro",
    ],
)
def test_names_and_numbers_show_no_language(text: str) -> None:
    assert language_of(text) is None


@pytest.mark.parametrize(
    "text",
    ['Can you tell me the meaning of "ありがとう" in Japanese?', "I'd like a hotel.", "I want to go on March 9th"],
)
def test_a_foreign_word_or_a_lone_letter_does_not_hide_english(text: str) -> None:
    assert language_of(text) == "english"


def test_full_width_letters_and_loose_accents_are_read_as_usual_ones() -> None:
    assert composed("ＰＤＦ cafe\u0301") == "PDF café"
