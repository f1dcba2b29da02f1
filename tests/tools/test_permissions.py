import pytest

from windowpane.context.items import Permission
from windowpane.context.session import ToolPermission
from windowpane.tools.permissions import Verdict, decide


@pytest.mark.parametrize(
    ("permission", "session", "allowed", "verdict"),
    [
        ("required", "always", False, "ask"),
        ("required", "always", True, "run"),
        ("required", "never", False, "run"),
        ("required", "never", True, "run"),
        ("required", "tool", False, "ask"),
        ("required", "tool", True, "run"),
        ("not_required", "always", False, "ask"),
        ("not_required", "always", True, "run"),
        ("not_required", "never", False, "run"),
        ("not_required", "never", True, "run"),
        ("not_required", "tool", False, "run"),
        ("not_required", "tool", True, "run"),
        ("forbidden", "always", False, "refuse"),
        ("forbidden", "always", True, "refuse"),
        ("forbidden", "never", False, "refuse"),
        ("forbidden", "never", True, "refuse"),
        ("forbidden", "tool", False, "refuse"),
        ("forbidden", "tool", True, "refuse"),
    ],
)
def test_a_call_runs_asks_or_is_refused_by_tool_session_and_what_was_allowed(
    permission: Permission, session: ToolPermission, allowed: bool, verdict: Verdict
) -> None:
    assert decide(permission, session, allowed_for_session=allowed) == verdict
