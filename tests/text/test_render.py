"""How items are written down for the model."""

import pytest

from windowpane.context.items import Reference, Rule
from windowpane.text.render import render_item


@pytest.mark.parametrize(
    ("item", "heading"),
    [
        (Rule("house-style", "Plain words."), "## house-style\n\nPlain words."),
        (Reference("resizing", "Drag it.", title="resizing"), "## resizing\n\nDrag it."),
        (Reference("resizing", "# Resize photos\n", title="Resize photos"), "## resizing\n\n# Resize photos\n"),
        (Reference("resizing", "# Steps\n", title="Photo\n Guide"), "## resizing: Photo Guide\n\n# Steps\n"),
    ],
)
def test_a_reference_has_its_title_beside_its_name_unless_its_text_begins_with_it(
    item: Rule | Reference, heading: str
) -> None:
    assert render_item(item) == heading
