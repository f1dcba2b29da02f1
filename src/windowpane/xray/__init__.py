"""X-ray: see through agents of other makers. A transparent proxy that records what passes to the same ledger."""
