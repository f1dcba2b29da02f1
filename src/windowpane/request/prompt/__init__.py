"""Write the system block: its sections, the site that the user looks at, the time where the user is."""
