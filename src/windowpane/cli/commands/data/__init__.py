"""Commands that manage sessions, stores and tokens."""
