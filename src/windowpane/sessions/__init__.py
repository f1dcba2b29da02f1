"""What a session is made of: create, export, working context, fetched context."""
