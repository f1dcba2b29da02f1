"""Looking back with a store alone: what happened is in the log, and no engine is needed to read it."""
