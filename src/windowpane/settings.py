"""Settings of a process: where it listens and where its data is.

Each can be given as an option, as an environment variable `WINDOWPANE_…`, or left at its default. What an agent or a
session can set is not here: that is in `agent.yaml` and in the session.
"""

from pathlib import Path

from platformdirs import user_data_path
from pydantic import Field
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
        default=None, description="Folder with one folder per agent, or one agent's folder. Default: `agents` in `data`."
    )
    log_level: str = Field(default="info", description="How much is logged: debug, info, warning, error.")

    @property
    def agents_folder(self) -> Path:
        """Return where the agents are."""
        return self.agents or self.data / "agents"

    @property
    def database_url(self) -> str:
        """Return where sessions are kept."""
        return self.store_url or f"sqlite:///{self.data / 'windowpane.db'}"
