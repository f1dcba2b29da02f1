"""The texts of sessions: their own, and those that they share."""
