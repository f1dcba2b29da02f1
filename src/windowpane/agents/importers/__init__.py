"""Bring in what people wrote for other programs: instructions, rules, skills and tool servers."""
