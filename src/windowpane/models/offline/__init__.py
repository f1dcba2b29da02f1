"""Models that speak in this process: no key, no network."""
