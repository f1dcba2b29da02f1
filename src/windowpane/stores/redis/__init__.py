"""Sessions in Redis or Valkey."""
