"""What `windowpane doctor` looks at."""
