"""Bundles of texts as they are sent to the server."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from windowpane.context.ids import BlobHash
from windowpane.stores.append import Append
from windowpane.stores.packing import pack

_KEPT = 8


class PackedBundles:
    """Packs bundles, and remembers the last ones: every new session of an agent brings the same."""

    def __init__(self) -> None:
        self._packed: OrderedDict[str, dict[BlobHash, bytes]] = OrderedDict()

    def arrays(self, appends: Sequence[Append]) -> tuple[list[object], ...]:
        """Return which append has which bundle, counted from 1, and the texts of each bundle once."""
        pairs = [(of, name) for of, append in enumerate(appends, 1) for name in append.bundles]
        given = {name: texts for append in appends for name, texts in append.bundles.items()}
        texts = [(name, *each) for name, inside in given.items() for each in self._of(name, inside).items()]
        return (
            [of for of, _ in pairs],
            [name for _, name in pairs],
            [name for name, _, _ in texts],
            [blob_hash for _, blob_hash, _ in texts],
            [body for _, _, body in texts],
        )

    def _of(self, name: str, texts: Mapping[BlobHash, str]) -> dict[BlobHash, bytes]:
        found = self._packed.pop(name, None) or {
            blob_hash: pack(text.encode("utf-8", "surrogatepass")) for blob_hash, text in texts.items()
        }
        self._packed[name] = found
        while len(self._packed) > _KEPT:
            self._packed.popitem(last=False)
        return found
