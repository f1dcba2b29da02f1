"""Keys of providers: what is missing for which, and a key that is given while the process runs."""

import stat
from pathlib import Path

import pytest

from models.talking import KEY, listen
from windowpane.api.models import ProviderView
from windowpane.errors import InvalidInputError, UnknownModelError
from windowpane.models.provider import PydanticModels
from windowpane.models.setup.keys import KeptKeys
from wire import openai_chat
from wire.reply import WireReply
from wire.server import running


def states(models: PydanticModels) -> dict[str, tuple[str | None, str, str | None]]:
    return {view.name: (view.lacking, view.advice, view.key_source) for view in models.providers()}


def test_each_provider_says_what_is_missing_before_it_can_be_used() -> None:
    environ = {"ANTHROPIC_API_KEY": KEY, "GEMINI_API_KEY": KEY, "OPENAI_BASE_URL": "http://me:secret@gpu:8000/v1?k=1"}
    models = PydanticModels(environ=environ)

    found = {view.name: view for view in models.providers()}

    assert states(models) == {
        "anthropic": (None, "", "environment"),
        "cerebras": ("key", "set CEREBRAS_API_KEY", None),
        "cohere": ("package", 'pip install "pydantic-ai-slim[cohere]"', None),
        "deepseek": ("key", "set DEEPSEEK_API_KEY", None),
        "fireworks": ("key", "set FIREWORKS_API_KEY", None),
        "google": (None, "", "environment"),
        "groq": ("package", 'pip install "pydantic-ai-slim[groq]"', None),
        "huggingface": ("package", 'pip install "pydantic-ai-slim[huggingface]"', None),
        "mistral": ("package", 'pip install "pydantic-ai-slim[mistral]"', None),
        "moonshotai": ("key", "set MOONSHOTAI_API_KEY", None),
        "ollama": (None, "", None),
        "openai": (None, "", None),
        "openrouter": ("key", "set OPENROUTER_API_KEY", None),
        "together": ("key", "set TOGETHER_API_KEY", None),
        "vllm": ("address", "set VLLM_BASE_URL", None),
        "xai": ("package", 'pip install "pydantic-ai-slim[xai]"', None),
    }
    assert "anthropic:claude-opus-4-6" in found["anthropic"].models
    assert found["google"].key_variable == "GEMINI_API_KEY"
    assert found["openai"].url == "http://gpu:8000/v1"
    assert found["ollama"] == ProviderView(
        name="ollama", lacking=None, advice="", key_variable="OLLAMA_API_KEY", key_source=None,
        url="http://localhost:11434/v1", models=(),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
def test_what_is_told_to_be_missing_is_what_opening_a_model_asks_for() -> None:
    models = PydanticModels(environ={})
    for view in models.providers():
        if view.lacking is None:
            assert models.open(f"{view.name}:some-model").name == f"{view.name}:some-model"
        else:
            with pytest.raises(UnknownModelError) as caught:
                models.open(f"{view.name}:some-model")
            assert str(caught.value).endswith(view.advice)


async def test_a_key_that_is_given_counts_from_the_next_call_on_and_can_be_removed(tmp_path: Path) -> None:
    async with running(*[openai_chat.answer(WireReply(("ok",)))] * 4) as wire:
        environ = {"OPENAI_BASE_URL": wire.url, "OPENAI_API_KEY": "sk-of-the-environment"}
        mine, another_worker = (PydanticModels(environ=environ, keys=KeptKeys(tmp_path / "keys")) for _ in range(2))
        async with mine, another_worker:
            await listen(another_worker.open("openai:gpt-4o"))
            mine.keep_key("openai", "sk-given-first\n")
            await listen(another_worker.open("openai:gpt-4o"))
            mine.keep_key("openai-chat", "sk-given-second")
            await listen(mine.open("openai:gpt-4o"))
            given = states(mine)["openai"]
            mine.remove_key("openai")
            mine.remove_key("openai")
            await listen(mine.open("openai:gpt-4o"))

    assert given == (None, "", "kept")
    assert [asked.headers["authorization"] for asked in wire.asked] == [
        "Bearer sk-of-the-environment",
        "Bearer sk-given-first",
        "Bearer sk-given-second",
        "Bearer sk-of-the-environment",
    ]


def test_a_kept_key_can_be_read_by_its_user_only(tmp_path: Path) -> None:
    PydanticModels(environ={}, keys=KeptKeys(tmp_path / "keys")).keep_key("anthropic", KEY)

    files = [tmp_path / "keys", *(tmp_path / "keys").iterdir()]
    assert [(file.name, stat.S_IMODE(file.stat().st_mode)) for file in files] == [
        ("keys", 0o700),
        ("ANTHROPIC_API_KEY", 0o600),
    ]


@pytest.mark.parametrize(
    ("provider", "key", "said"),
    [
        ("../openai", KEY, "no provider '../openai' takes a key; available: anthropic, "),
        ("echo", KEY, "no provider 'echo' takes a key"),
        ("openai", "two words", "a key has 1 to 1000 letters, digits and signs, without spaces"),
        ("openai", " \n", "a key has 1 to 1000"),
        ("openai", "k" * 1001, "a key has 1 to 1000"),
        ("openai", "schlüssel", "a key has 1 to 1000"),
    ],
)
def test_what_is_no_key_or_no_provider_is_refused_and_nothing_is_kept(
    tmp_path: Path, provider: str, key: str, said: str
) -> None:
    models = PydanticModels(environ={}, keys=KeptKeys(tmp_path / "keys"))
    with pytest.raises(InvalidInputError) as caught:
        models.keep_key(provider, key)

    assert str(caught.value).startswith(said)
    assert "schlüssel" not in str(caught.value)
    assert not (tmp_path / "keys").exists()


def test_without_a_folder_no_key_is_kept() -> None:
    with pytest.raises(InvalidInputError, match="set them in the environment"):
        PydanticModels(environ={}).keep_key("openai", KEY)
