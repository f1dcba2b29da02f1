"""What is brought in from the web: search engines, pages, and the guard that keeps fetches on the public internet."""
