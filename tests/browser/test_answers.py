"""Answers are shown as they were written: nothing is missing, and nothing is changed into something else."""

from __future__ import annotations

from playwright.sync_api import Browser, Locator, expect

from browser.place import Place
from browser.sight import Sight, seeing

ANSWER = r"""Use Array<String>, not Vec<i>.

<thinking>
Let me **see**.
</thinking>

3. three
4. four

- [x] done
- [ ] open

The area is \(\pi r^2\), the price $5 to $10, and

\[
\int_0^1 x\,dx = \frac{1}{2}
\]

A broken one, \(\frac{1\), stays. It is so[^why].

שלום עולם

[^why]: Because of the *rules*.
"""


def answered(sight: Sight, place: Place, text: str) -> Locator:
    session = place.new_session("Answers")
    place.ask(session, "Show me", text)
    sight.goto(f"/s/{session}")
    return sight.page.get_by_role("log").locator(".prose")


def test_an_answer_loses_none_of_its_letters(sight: Sight, place: Place) -> None:
    answer = answered(sight, place, ANSWER)

    expect(answer).to_contain_text("Use Array<String>, not Vec<i>.")
    expect(answer).to_contain_text("<thinking> Let me see. </thinking>")
    expect(answer.locator("ol[start='3'] > li").first).to_have_text("three")
    expect(answer.get_by_role("checkbox", name="Done", exact=True)).to_be_checked()
    expect(answer.get_by_role("checkbox", name="Not done")).not_to_be_checked()
    expect(answer).to_contain_text("the price $5 to $10")
    expect(answer).to_contain_text(r"A broken one, \(\frac{1\), stays.")
    hebrew = answer.get_by_text("שלום עולם")
    assert hebrew.evaluate("line => getComputedStyle(line).direction") == "rtl"
    sight.shoot("answer")


ARABIC = """الخطوات:

1. افتح الألبوم
2. English first

> اقتباس

| الحجم | العرض |
|---|---|
| صغير | 600 |
"""


def test_lists_tables_and_quotations_begin_on_the_side_of_their_language(sight: Sight, place: Place) -> None:
    answer = answered(sight, place, ARABIC)

    for whole in ("ol", "blockquote", "table"):
        assert answer.locator(whole).evaluate("whole => getComputedStyle(whole).direction") == "rtl"
    # The numbers stand in the room that the list leaves for them.
    assert answer.locator("ol").evaluate("list => parseFloat(getComputedStyle(list).paddingRight)") > 10
    first, second = (answer.get_by_role("columnheader", name=name) for name in ("الحجم", "العرض"))
    assert first.evaluate("cell => cell.getBoundingClientRect().x") > second.evaluate(
        "cell => cell.getBoundingClientRect().x"
    )
    sight.shoot("answer-arabic")


def test_formulas_are_set_in_type_under_the_strict_policy(sight: Sight, place: Place) -> None:
    answer = answered(sight, place, ANSWER)

    formulas = answer.locator("math")
    expect(formulas).to_have_count(2)
    assert formulas.first.locator("annotation").text_content() == r"\pi r^2"
    expect(formulas.nth(1).locator("mfrac").first).to_be_visible()
    assert formulas.nth(1).evaluate("formula => getComputedStyle(formula).display").startswith("block")
    sight.check_access()


def test_a_footnote_is_reached_and_left_by_its_links(desktop: Sight, place: Place) -> None:
    answer = answered(desktop, place, ANSWER)
    address = desktop.page.url
    mark = answer.get_by_role("link", name="Footnote 1")
    mark.click()
    note = answer.get_by_role("list", name="Footnotes").get_by_role("listitem")
    expect(note).to_be_focused()
    expect(note).to_have_text("Because of the rules. ↩")
    note.get_by_role("link", name="Back to the text").click()

    expect(mark).to_be_focused()
    assert desktop.page.url == address


def test_what_sets_formulas_is_loaded_only_for_a_formula(desktop: Sight, place: Place) -> None:
    asked: list[str] = []
    desktop.page.on("request", lambda request: asked.append(request.url))
    plain = answered(desktop, place, "No formula, for $5.")
    expect(plain).to_have_text("No formula, for $5.")
    desktop.page.wait_for_load_state("networkidle")
    assert not any("typeset" in url for url in asked)

    expect(answered(desktop, place, r"\(x\)").locator("math")).to_be_visible()
    assert any("typeset" in url for url in asked)


def test_an_answer_is_legible_in_the_dark(browser: Browser, place: Place) -> None:
    for screen in ("desktop", "phone"):
        with seeing(browser, place.url, screen, "dark") as sight:
            expect(answered(sight, place, ANSWER).locator("math")).to_have_count(2)
            sight.shoot("answer-dark")
            sight.check_access()
            sight.check()
