"""A real model without a key: SmolLM2 with 135 million parameters, run by llama.cpp on this machine."""
