"""Requests that go on with the last one, so that providers can read its beginning from their cache."""
