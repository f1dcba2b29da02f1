"""Sessions whose texts are encrypted, in any store."""
