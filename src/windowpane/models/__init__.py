"""The boundary to language models: pydantic-ai behind one small port."""
