"""Texts as vectors: the port, the local model, remote endpoints, and caches."""
