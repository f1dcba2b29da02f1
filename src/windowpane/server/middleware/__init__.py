"""What every request passes through: logging, limits, authentication, headers, metrics."""
