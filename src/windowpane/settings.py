"""Settings of a process: where it listens and where its data is.

Each can be given as an option, as an environment variable `WINDOWPANE_…`, or left at its default. What an agent or a
session can set is not here: that is in `agent.yaml` and in the session.
"""

import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_data_path
from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from windowpane.files.read import DEFAULT_LIMIT_BYTES
from windowpane.text.redact import without_password


def _listed(value: Any) -> Any:
    """Return the entries of a variable: with commas between them, or as a JSON list."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return _from_json(value, '["a", "b"]')
    return [entry for part in value.split(",") if (entry := part.strip())]


def _named(value: Any) -> Any:
    """Return the entries of a variable that is a JSON object."""
    return _from_json(value, '{"name": "value"}') if isinstance(value, str) else value


def _from_json(text: str, example: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is no JSON such as {example}: {error}") from None


# NoDecode: else the library reads JSON alone, and says of anything else neither what it is nor what to write.
Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
Folders = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_listed)]
NamedTexts = Annotated[dict[str, str], NoDecode, BeforeValidator(_named)]


class Settings(BaseSettings):
    """What a process needs to know before it can open anything."""

    model_config = SettingsConfigDict(env_prefix="WINDOWPANE_", frozen=True, extra="ignore")

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8470, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    data: Path = Field(
        default_factory=lambda: user_data_path("windowpane"),
        description="Folder for the database, the agents and caches. Default: the user's data folder.",
    )
    store_url: str | None = Field(
        default=None,
        description="Where sessions are kept: `sqlite:///file`, `postgresql://user:password@host/database`, "
        "`redis://host:6379/0`, `redis+cluster://host:7000` or `memory:`. Default: a file in `data`.",
    )
    bus_url: str | None = Field(
        default=None,
        description="What tells workers of one another's changes, and of words while they are written: "
        "`nats://host:4222` or `redis://host:6379/0`. Default: the store, where it can.",
    )
    blobs_url: str | None = Field(
        default=None,
        description="Where large texts and files of sessions are kept: `s3://bucket/prefix?endpoint=https://host` or "
        "`file:///folder`. Default: in the store.",
    )
    blobs_from_bytes: int = Field(
        default=65_536, ge=1, description="With `blobs_url`: from what size on a text is kept there, in bytes."
    )
    analytics_url: str | None = Field(
        default=None,
        description="Where turns are counted for all workers together: `postgresql://user@host/database`. Default: a "
        "file on each machine.",
    )
    encryption_key: SecretStr | None = Field(
        default=None,
        description="Encrypts what is kept of sessions: 32 random bytes in base64. Several keys, separated by commas: "
        "the first one writes, all of them read.",
    )
    encryption_key_file: Path | None = Field(
        default=None, description="The file that holds the encryption keys, one on a line, instead of `encryption_key`."
    )
    profile: Literal["durable", "ephemeral"] = Field(
        default="durable", description="Whether sessions stay until they are deleted, or expire when they are not used."
    )
    expire_after_s: float = Field(
        default=3600, gt=0, description="With the profile `ephemeral`: how long a session stays after its last use."
    )
    max_sessions: int = Field(
        default=500,
        ge=1,
        description="With the profile `ephemeral`: how many sessions stay; the least recently used goes first.",
    )
    archive_url: str | None = Field(
        default=None,
        description="With the profile `ephemeral`: the store that expired sessions move to. They come back "
        "when they are used again. Default: they are deleted.",
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
    fetch_allow: Texts = Field(
        default=(), description="Addresses or networks beside the public web that pages may be fetched from."
    )
    roots: Folders = Field(default=(), description="Folders whose files the page's applets may show and edit.")
    log_level: str = Field(default="info", description="How much is logged: debug, info, warning, error.")
    workers: int = Field(default=1, ge=1, le=256, description="How many processes answer requests.")
    grace_s: float = Field(
        default=10, ge=0, description="How long turns may go on after the server was asked to stop, in seconds."
    )
    lease_s: float = Field(
        default=15, gt=0, le=600, description="How long a worker that died keeps its session busy, in seconds."
    )
    tokens: Path | None = Field(
        default=None, description="The file that tokens are kept in, by their hash. Default: `tokens.json` in `data`."
    )
    require_token: bool | None = Field(
        default=None,
        description="Whether every caller needs a token. Default: unless the address is loopback. Set it to true "
        "behind a proxy.",
    )
    hosts: Texts = Field(
        default=(),
        description="Names by which browsers may address the server. Default: those of loopback; any with tokens.",
    )
    allow_origins: Texts = Field(
        default=(), description="Other origins whose pages may use the API, such as `https://pane.example`."
    )
    root_path: str = Field(
        default="",
        pattern=r"^((/[A-Za-z0-9._~-]+)+/?|/)?$",
        description="The path below which a proxy serves Windowpane, such as `/pane`. Default: none.",
    )
    trust_forwarded_prefix: bool = Field(
        default=False,
        description="Whether the proxy in front may say that path itself, in `X-Forwarded-Prefix`.",
    )
    requests_per_minute: int | None = Field(
        default=None, ge=0, description="For each token or address; 0 is any number. Default: 0 on loopback, else 600."
    )
    max_turns: int = Field(
        default=128,
        ge=0,
        description="How many turns each worker runs at once; a message beyond that is refused with 429. 0 is any "
        "number, the default of `windowpane.open()`.",
    )
    max_turns_per_owner: int = Field(
        default=32,
        ge=0,
        description="How many of them may be one owner's; more are refused with 429. The owner `local`, who needs no "
        "token, is not bound. 0 is any number, the default of `windowpane.open()`.",
    )
    attachment_bytes: int = Field(
        default=DEFAULT_LIMIT_BYTES, ge=0, description="How much the files of a message may take together, in bytes."
    )
    dollars_per_day: Decimal | None = Field(
        default=None, ge=0, description="What each owner's model calls may cost a day (UTC). Default: any amount."
    )
    dollars_per_month: Decimal | None = Field(
        default=None, ge=0, description="What each owner's model calls may cost a month (UTC). Default: any amount."
    )

    xray_upstreams: NamedTexts = Field(
        default_factory=dict,
        description="Where `/xray/NAME/…` passes calls on to, beside the usual providers: a JSON object of names and "
        'addresses, such as `{"gateway": "https://llm.example"}`.',
    )

    @property
    def agents_folder(self) -> Path:
        """Return where the agents are."""
        return self.agents or self.data / "agents"

    @property
    def cache_folder(self) -> Path:
        """Return where vectors and the built model are cached. Everything in it can be made again."""
        return self.data / "cache"

    @property
    def analytics_place(self) -> Path | str | None:
        """Return where turns are counted: a URL, a file for each store, or None when the store itself is not kept."""
        if self.database_url.startswith("memory:"):
            return None
        if self.analytics_url:
            return self.analytics_url
        name = hashlib.sha256(self.database_url.encode()).hexdigest()[:16]
        return self.cache_folder / f"analytics-{name}.db"

    @property
    def limits_cost(self) -> bool:
        """Tell whether what model calls cost is limited."""
        return self.dollars_per_day is not None or self.dollars_per_month is not None

    @property
    def tokens_file(self) -> Path:
        """Return where tokens are kept."""
        return self.tokens or self.data / "tokens.json"

    @property
    def keys_folder(self) -> Path:
        """Return where keys of providers are kept that were given to the server."""
        return self.data / "keys"

    @property
    def database_url(self) -> str:
        """Return where sessions are kept."""
        return self.store_url or f"sqlite:///{self.data / 'windowpane.db'}"

    @property
    def shown_database_url(self) -> str:
        """Return where sessions are kept, fit to be shown: without a password."""
        return without_password(self.database_url)
