"""Find what a message needs among hundreds of items, offline, by meaning and by words."""
