"""Cut a model's words at the first stop sequence, for providers that do not do it themselves.

A sequence may come in pieces, so what could be the beginning of one is held back until more has come.
"""

from collections.abc import Sequence

from windowpane.models.base import ModelText

STOPPED = "stop_sequence"
"""Why a step ended that was cut here."""


class StopCutter:
    """Passes words on up to the first stop sequence. `found` is the sequence, once it has come."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.said = ""
        self.found: str | None = None

    def take(self, text: ModelText) -> list[ModelText]:
        """Return what can be passed on of what has come."""
        if text.kind != "text":
            return [text]
        self._held += text.text
        places = {stop: place for stop in self._stops if (place := self._held.find(stop)) >= 0}
        if places:
            self.found = min(places, key=lambda stop: places[stop])
            return self._pass_on(places[self.found])
        return self._pass_on(len(self._held) - self._maybe_begun())

    def rest(self) -> list[ModelText]:
        """Return what was held back, now that no more comes."""
        return self._pass_on(len(self._held))

    def _pass_on(self, length: int) -> list[ModelText]:
        text, self._held = self._held[:length], self._held[length:]
        self.said += text
        return [ModelText(text)] if text else []

    def _maybe_begun(self) -> int:
        """Return the length of the longest end of what is held that begins a stop sequence."""
        longest = min(max(map(len, self._stops), default=1) - 1, len(self._held))
        ends = (size for size in range(longest, 0, -1) if any(s.startswith(self._held[-size:]) for s in self._stops))
        return next(ends, 0)
