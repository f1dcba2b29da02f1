"""Short messages between workers: the port and its adapters."""
