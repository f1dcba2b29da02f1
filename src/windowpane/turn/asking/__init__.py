"""What a running tool asks its user and its model."""
