"""Settings of a process: where it listens and where its data is.

Each can be given as an option, as an environment variable `WINDOWPANE_…`, or left at its default. What an agent or a
session can set is not here: that is in `agent.yaml` and in the session.
"""

from pathlib import Path

from platformdirs import user_data_path
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What a process needs to know before it can open anything."""

    model_config = SettingsConfigDict(env_prefix="WINDOWPANE_", frozen=True, extra="ignore")

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8470, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    data: Path = Field(
        default_factory=lambda: user_data_path("windowpane"),
        description="Folder for the database, the agents and caches.",
    )
    store_url: str | None = Field(
        default=None, description="Where sessions are kept: `sqlite:///file`, or `memory:`. Default: a file in `data`."
    )
    agents: Path | None = Field(
        default=None,
        description="Folder with one folder per agent, or one agent's folder. Default: `agents` in `data`.",
    )
    weights: Path | None = Field(
        default=None,
        description="Folder with the embedding model's files. Default: those of the installed weights package.",
    )
    embeddings_url: str | None = Field(
        default=None, description="An OpenAI-compatible address to embed with instead of the local model."
    )
    embeddings_model: str = Field(
        default="text-embedding-3-small", description="The model to ask for at `embeddings_url`."
    )
    embeddings_key: SecretStr | None = Field(default=None, description="The key for `embeddings_url`.")
    search_engine: str | None = Field(
        default=None, description="What research mode searches with: searxng, brave, tavily or duckduckgo."
    )
    fetch_allow: tuple[str, ...] = Field(
        default=(), description="Addresses or networks beside the public web that pages may be fetched from."
    )
    log_level: str = Field(default="info", description="How much is logged: debug, info, warning, error.")

    @property
    def agents_folder(self) -> Path:
        """Return where the agents are."""
        return self.agents or self.data / "agents"

    @property
    def cache_folder(self) -> Path:
        """Return where vectors and the built model are cached. Everything in it can be made again."""
        return self.data / "cache"

    @property
    def database_url(self) -> str:
        """Return where sessions are kept."""
        return self.store_url or f"sqlite:///{self.data / 'windowpane.db'}"
