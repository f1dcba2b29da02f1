"""Print which statements of the design documents are proved by tests, and which are not yet.

The statements' ids stand in `spec_ids.txt`. A test claims one with `@pytest.mark.spec("S0.4")`; a range with
`@pytest.mark.spec("S0.4-S0.6")`.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parent
CLAIM = re.compile(r"mark\.spec\(([^)]*)\)")


def known_ids() -> list[str]:
    return (TESTS / "spec_ids.txt").read_text().split()


def claims() -> dict[str, list[str]]:
    """Return the test files that claim each id."""
    known = known_ids()
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for arguments in CLAIM.findall(path.read_text()):
            for claim in re.findall(r"[\"']([^\"']+)[\"']", arguments):
                for spec_id in expand(claim, known):
                    found[spec_id].append(path.relative_to(TESTS).as_posix())
    return found


def expand(claim: str, known: list[str]) -> list[str]:
    """Return the ids that a claim names. Unknown ids are an error: a typo would prove nothing."""
    first, dash, last = claim.partition("-")
    for spec_id in (first, last) if dash else (first,):
        if spec_id not in known:
            sys.exit(f"no statement has the id {spec_id!r}")
    return known[known.index(first) : known.index(last) + 1] if dash else [first]


def main() -> None:
    found = claims()
    groups: dict[str, list[str]] = defaultdict(list)
    for spec_id in known_ids():
        groups[spec_id.split(".")[0]].append(spec_id)
    for group, ids in groups.items():
        open_ids = [spec_id for spec_id in ids if spec_id not in found]
        print(f"{group}: {len(ids) - len(open_ids)} of {len(ids)} proved")
        if open_ids:
            print("  not yet: " + " ".join(open_ids))


if __name__ == "__main__":
    main()
