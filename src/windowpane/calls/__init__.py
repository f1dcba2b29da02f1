"""The ledger of calls: what was sent to a provider, to the byte, and how it ended."""
