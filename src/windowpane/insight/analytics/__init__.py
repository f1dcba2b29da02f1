"""What turns cost over time, which items were used, and what could be better."""
