"""The environment variables that set providers up, as the providers' own documentation names them."""

from collections.abc import Mapping
from dataclasses import dataclass

OLLAMA_URL = "http://localhost:11434/v1"


@dataclass(frozen=True, slots=True)
class Setup:
    """The environment variables that set a provider up: those that hold its key, and the one for its address.

    `packages` are those that its client needs and Windowpane does not install.
    """

    key_variables: tuple[str, ...] = ()
    url_variable: str = ""
    packages: tuple[str, ...] = ()


SETUPS: Mapping[str, Setup] = {
    "anthropic": Setup(("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL"),
    "cerebras": Setup(("CEREBRAS_API_KEY",)),
    "cohere": Setup(("CO_API_KEY",), "CO_BASE_URL", ("cohere",)),
    "deepseek": Setup(("DEEPSEEK_API_KEY",)),
    "fireworks": Setup(("FIREWORKS_API_KEY",)),
    "google": Setup(("GOOGLE_API_KEY", "GEMINI_API_KEY"), "GOOGLE_GEMINI_BASE_URL"),
    "groq": Setup(("GROQ_API_KEY",), "GROQ_BASE_URL", ("groq",)),
    "huggingface": Setup(("HF_TOKEN",), packages=("huggingface_hub", "httpx")),
    "mistral": Setup(("MISTRAL_API_KEY",), packages=("mistralai",)),
    "moonshotai": Setup(("MOONSHOTAI_API_KEY",), "MOONSHOTAI_BASE_URL"),
    "ollama": Setup(("OLLAMA_API_KEY",), "OLLAMA_BASE_URL"),
    "openai": Setup(("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "openai-chat": Setup(("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "openai-responses": Setup(("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "openrouter": Setup(("OPENROUTER_API_KEY",)),
    "together": Setup(("TOGETHER_API_KEY",)),
    "vllm": Setup(("VLLM_API_KEY",), "VLLM_BASE_URL"),
    "xai": Setup(("XAI_API_KEY",), packages=("xai_sdk",)),
}
"""The providers worth naming in a picker or an error. Others that pydantic-ai knows work too."""
