"""What happened: past turns, many turns together, and where to find them."""
