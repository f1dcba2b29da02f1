"""Large texts outside the store: the port and its adapter."""
