"""What a session remembers: recent messages, recall, summary, facts."""
