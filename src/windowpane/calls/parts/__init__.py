"""Take the bodies of calls apart: whose each stretch is, what it costs, and what of it is of no use."""
