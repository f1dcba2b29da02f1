"""Files that users attach and tools return: what they are, and what they say."""
