"""Find sessions, turns and items by what was said and by what requests had."""
