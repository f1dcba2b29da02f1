"""What every process that serves HTTP has in common: the socket, limits on what arrives, and the log."""
