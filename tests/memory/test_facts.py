import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.memory.facts import (
    FactLimits,
    Merged,
    facts,
    merge_facts,
    merge_preferences,
    preferences,
    subject,
    weight,
)
from windowpane.memory.hard_parts import hard_kinds
from windowpane.text.tokens import count

HARD = (
    "The config is at /etc/nginx/app.conf.",
    "the port is 8443",
    "See https://example.com/a?b=1.",
    "We decided to use PostgreSQL instead of MySQL.",
    "`make serve` starts it",
    "Maria Lopez lives in Lisbon",
    "never deploy on Fridays",
    "the budget is 4,500 euros",
)
told = st.lists(st.one_of(st.sampled_from(HARD), st.text(max_size=60)), max_size=12)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The log is in /var/log/app/error.log.", "The log is in /var/log/app/error.log"),
        ("Look at src/app/main.py, please.", "Look at src/app/main.py, please"),
        ("Docs: https://example.com/v2/items?x=1.", "Docs: https://example.com/v2/items?x=1"),
        ("It takes 30 ms per query.", "It takes 30 ms per query"),
        ("The dump has 4.5 million rows!", "The dump has 4.5 million rows"),
        ("We launch on 3 May 2027.", "We launch on 3 May 2027"),
        ("The call is on 2026-11-16 at 14:30.", "The call is on 2026-11-16 at 14:30"),
        ("I paid $1,200.50 for it.", "I paid $1,200.50 for it"),
        ("Rename parseUserInput to read_input", "Rename parseUserInput to read_input"),
        ("id 550e8400-e29b-41d4-a716-446655440000", "id 550e8400-e29b-41d4-a716-446655440000"),
        ("commit 9f8e7d6c5b4a broke it", "commit 9f8e7d6c5b4a broke it"),
        ("It is ticket ABC-123.", "It is ticket ABC-123"),
        ("We run v2.14.3 there", "We run v2.14.3 there"),
        ("The service listens on port 8443.", "The service listens on port 8443"),
        ("Write to ann@example.com.", "Write to ann@example.com"),
        ("First run `docker compose up -d`.", "First run `docker compose up -d`"),
        ("$ make serve", "make serve"),
        ("git push origin main", "git push origin main"),
        ("So, we decided to use tabs.", "we decided to use tabs"),
        ("Let's go with the blue one.", "Let's go with the blue one"),
        ("You must never touch the archive.", "You must never touch the archive"),
        ("- **Region:** eu-central-1, 3 replicas", "Region:** eu-central-1, 3 replicas"),
    ],
)
def test_a_hard_fact_is_found_and_quoted(text: str, found: str) -> None:
    assert facts(text) == (found,)


@pytest.mark.parametrize(
    "text", ["", "Thanks, that helps!", "How are you?", "hello there", "Go with the flow", "Okay."]
)
def test_small_talk_states_no_fact(text: str) -> None:
    assert facts(text) == ()


@pytest.mark.parametrize("lead", ["Just so you know: ", "For the record, ", "Note that ", "By the way, "])
def test_words_that_announce_a_statement_do_not_make_it_small_talk(lead: str) -> None:
    assert [
        fact
        for fact in facts(f"{lead}Anna Silva is what ticketing has as owner.", by_user=True)
        if "Anna Silva" in fact
    ]


def test_every_sentence_gives_its_own_fact_in_order() -> None:
    text = "We chose SQLite for the cache. It lives in ~/.cache/pane/vectors.db; the limit is 400 MB.\n\nBob agrees."

    assert facts(text) == (
        "We chose SQLite for the cache",
        "It lives in ~/.cache/pane/vectors.db",
        "the limit is 400 MB",
    )


def test_a_question_states_nothing_but_names_what_it_is_about() -> None:
    assert facts("What does parse_line in src/app/main.py do on 3 May?") == ("parse_line", "src/app/main.py")


def test_a_long_sentence_is_reduced_to_what_stands_around_its_hard_parts() -> None:
    text = (
        "When we sat together last week and talked about all the things that had gone wrong in that release, somebody "
        "remembered that the nightly job writes its dump to /srv/backup/nightly.sql and nobody ever looks at it again"
    )

    assert facts(text) == ("that the nightly job writes its dump to /srv/backup/nightly.sql",)


def test_of_fenced_code_only_commands_are_facts() -> None:
    text = "Do this:\n```bash\n$ uv run pytest\nx = compute_total(12)\n```\nThe timeout is 30 s."

    assert facts(text) == ("uv run pytest", "The timeout is 30 s")


def test_the_most_telling_facts_of_a_long_message_stay() -> None:
    lines = [f"We saw Anna in week {number}." for number in range(10, 40)]
    text = "\n".join((*lines[:20], "We decided to keep /srv/data/main.db.", *lines[20:]))

    found = facts(text, most=3)

    assert len(found) == 3
    assert "We decided to keep /srv/data/main.db" in found


def test_a_later_fact_about_the_same_subject_replaces_the_earlier_one() -> None:
    before = ("The port is 8443", "the staging port is 8444")

    assert merge_facts(before, ("the port is now 9090",)).kept == ("the staging port is 8444", "the port is now 9090")


@pytest.mark.parametrize(
    ("fact", "about"),
    [
        ("The port is 8443", "port"),
        ("our new budget: 4,500 euros", "budget"),
        ("MAX_SIZE = 20 MB", "max_size"),
        ("it is 8443", ""),
        ("Just so you know: port 8443", ""),
        ("Important: 20 MB at most", ""),
        ("Maria is nice", ""),
        ("We met on 3 May", ""),
    ],
)
def test_a_subject_is_named_only_where_a_fact_names_it_plainly(fact: str, about: str) -> None:
    assert subject(fact) == about


def test_a_fact_that_stands_inside_of_another_is_not_kept_twice() -> None:
    merged = merge_facts(
        ("/etc/app", "port 80"), ("the folder is /etc/app for all", "port 8080 is open", "PORT  80")
    ).kept

    assert merged == ("the folder is /etc/app for all", "port 8080 is open", "PORT  80")


def test_when_there_are_too_many_facts_the_least_telling_go_first() -> None:
    before = ("We met Anna in Rome", "we decided to use /srv/data/main.db", "The meeting took 20 minutes")

    assert merge_facts(before, ("the key is ABC-123",), FactLimits(most=2)).kept == (
        "we decided to use /srv/data/main.db",
        "the key is ABC-123",
    )


@given(told, told, st.integers(0, 12), st.integers(0, 80))
def test_merging_never_rewrites_a_fact_and_stays_within_its_limits(
    before: list[str], new: list[str], most: int, most_tokens: int
) -> None:
    limits = FactLimits(most, most_tokens)

    merged = merge_facts(before, new, limits).kept

    assert set(merged) <= {*before, *new}
    assert len(merged) == len(set(merged)) <= most
    assert sum(count(fact) + 1 for fact in merged) <= most_tokens
    assert merged == merge_facts(before, new, limits).kept
    assert merge_facts(merged, (), limits).kept == merged


@given(st.one_of(st.text(max_size=400), told.map("\n".join), told.map(" ".join)))
def test_facts_are_always_quotations(text: str) -> None:
    found = facts(text)

    assert all(fact and fact in text and "\n" not in fact for fact in found)
    assert all(part in fact for fact in found for _, part in hard_kinds(fact))
    assert found == facts(text)


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "a-" * 50_000, "a_b." * 25_000, "/" * 100_000, "`x" * 50_000, "1," * 50_000]
)
def test_pasted_data_of_any_shape_is_read_quickly_and_yields_little(text: str) -> None:
    assert len(facts(text)) <= 12


def test_what_decides_tells_more_than_what_only_names() -> None:
    assert weight("we decided to use SQLite in /srv/app") > weight("SQLite is in /srv/app") > weight("we met Anna")


@pytest.mark.parametrize(
    "said",
    [
        "My brother Tomas studies law.",
        "I have three cats.",
        "I work with Maria Lopez from Lisbon.",
        "The spare key is under the flower pot.",
        "We live in Aarhus, close to the harbour.",
    ],
)
def test_what_a_user_states_in_plain_words_is_a_fact(said: str) -> None:
    assert facts(f"Haha, yes! {said} That sounds lovely.", by_user=True) == (said.removesuffix("."),)


@pytest.mark.parametrize(
    "said",
    [
        "That must have been awesome!",
        "I never thought about it like that before.",
        "Thanks, that means a lot to me.",
        "You always know what to say, Caroline!",
    ],
)
def test_chit_chat_is_no_fact_and_no_preference(said: str) -> None:
    assert facts(said, by_user=True) == ()
    assert preferences(said) == ()


@pytest.mark.parametrize(
    "said",
    [
        "I am allergic to penicillin",
        "Use British spelling",
        "Don't use emojis when you talk to me",
        "I would rather walk than drive",
        "Call me Theo",
        "I prefer short answers",
    ],
)
def test_a_standing_preference_is_kept_apart_from_facts(said: str) -> None:
    assert preferences(f"{said}.") == (said,)
    assert facts(f"{said}.", by_user=True) == ()


def test_what_there_is_no_room_for_is_listed() -> None:
    found = merge_facts(("lunch on Friday", "the key is ABC-123"), ("mail a@example.com",), FactLimits(most=2))

    assert found == Merged(("the key is ABC-123", "mail a@example.com"), ("lunch on Friday",))


def test_a_taste_is_given_up_before_an_allergy() -> None:
    tastes = tuple(f"I like cheese from valley {number}" for number in range(40))

    found = merge_preferences(("I am allergic to peanuts",), tastes)

    assert found.kept[0] == "I am allergic to peanuts"
    assert len(found.kept) == 24
    assert sorted((*found.kept, *found.evicted)) == sorted(("I am allergic to peanuts", *tastes))


def test_a_preference_that_was_changed_goes() -> None:
    found = merge_preferences(("I don't eat meat",), ("Never suggest fish",), ("I eat meat again",))

    assert found == Merged(("Never suggest fish",))
