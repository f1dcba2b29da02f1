"""Models by name: which there are, what they need, and that they are built once and closed."""

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from models.talking import KEY, QUICK, listen, openai_models
from windowpane.errors import ModelUnavailableError, UnknownModelError
from windowpane.models.local.server import is_installed
from windowpane.models.provider import SETUPS, PydanticModels
from windowpane.models.scripted import Reply, ScriptedModel
from wire import openai_chat
from wire.reply import WireReply
from wire.server import running

HERE = ("local",) if is_installed() else ()
ALL_KEYS = {variable: KEY for setup in SETUPS.values() for variable in setup.key_variables}


async def test_echo_needs_nothing() -> None:
    async with PydanticModels(environ={}) as models:
        model = models.open("echo")

        assert (model.name, models.window_tokens("echo")) == ("echo", 32_000)
        assert models.known() == ("echo", *HERE)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openai-chat:gpt-4o", "OPENAI_API_KEY"),
        ("openai-responses:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-opus-4-6", "ANTHROPIC_API_KEY"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("openrouter:meta/llama", "OPENROUTER_API_KEY"),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
        ("nebius:some-model", "NEBIUS_API_KEY"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # compiling google-genai
def test_a_missing_key_is_told_by_the_variable_to_set(name: str, variable: str) -> None:
    with pytest.raises(UnknownModelError, match=f"^{name} .*set {variable}"):
        PydanticModels(environ={}).open(name)


def test_an_unknown_provider_is_told_with_those_there_are() -> None:
    with pytest.raises(UnknownModelError) as caught:
        PydanticModels(environ={}).open("antropic:claude")

    assert str(caught.value) == (
        "no provider 'antropic' for 'antropic:claude' (did you mean anthropic?); available: anthropic, cerebras, "
        "cohere, deepseek, echo, fireworks, google, groq, huggingface, mistral, moonshotai, ollama, openai, "
        "openai-chat, openai-responses, openrouter, together, vllm, xai"
    )


@pytest.mark.parametrize("name", ["", "gpt-5", "openai:", ":gpt-5", "test", "echo:"])
def test_a_name_without_provider_and_model_says_how_to_write_one(name: str) -> None:
    with pytest.raises(UnknownModelError, match=r"provider:model|no provider"):
        PydanticModels(environ={}).open(name)


@pytest.mark.parametrize("provider", ["groq", "mistral", "cohere"])
def test_a_provider_whose_package_is_missing_says_what_to_install(provider: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        PydanticModels(environ=ALL_KEYS).open(f"{provider}:some-model")

    assert str(caught.value) == (
        f'{provider}:some-model needs another package: pip install "pydantic-ai-slim[{provider}]"'
    )


async def test_the_window_comes_from_the_price_list_without_any_key_and_is_unknown_otherwise() -> None:
    async with PydanticModels(environ={}) as models:
        windows = {
            name: models.window_tokens(name)
            for name in (
                "openai:gpt-5",
                "openai-chat:gpt-4o",
                "anthropic:claude-opus-4-5",
                "google:gemini-2.5-flash",
                "ollama:qwen3",
                "openai:my-fine-tune",
            )
        }

    assert windows == {
        "openai:gpt-5": 400_000,
        "openai-chat:gpt-4o": 128_000,
        "anthropic:claude-opus-4-5": 200_000,
        "google:gemini-2.5-flash": 1_048_576,
        "ollama:qwen3": None,
        "openai:my-fine-tune": None,
    }


async def test_a_model_is_built_once() -> None:
    async with PydanticModels(environ={"OPENAI_API_KEY": KEY}) as models:
        assert models.open("openai:gpt-5") is models.open("openai:gpt-5")
        assert models.open("openai:gpt-5") is not models.open("openai:gpt-4o")


def test_only_models_of_providers_with_a_key_are_offered() -> None:
    known = PydanticModels(environ={"ANTHROPIC_API_KEY": KEY, "GROQ_API_KEY": ""}).known()

    assert known[0] == "echo"
    assert "anthropic:claude-opus-4-6" in known
    assert {name.partition(":")[0] for name in known} == {"echo", *HERE, "anthropic"}


async def test_scripted_models_are_opened_by_their_name_and_offered() -> None:
    demo = ScriptedModel("demo", [Reply("Hi.")])
    models = PydanticModels(scripts=[demo], environ={})

    assert models.open("scripted:demo") is demo
    assert models.known() == ("echo", *HERE, "scripted:demo")
    with pytest.raises(UnknownModelError, match="no script 'scripted:other'; available: scripted:demo"):
        models.open("scripted:other")


async def test_closing_ends_the_connections() -> None:
    async with running(openai_chat.answer(WireReply(("ok",)))) as wire:
        models = openai_models(wire.url)
        model = models.open("openai:gpt-4o")
        await listen(model)

        await models.aclose()
        await models.aclose()

        with pytest.raises((ModelUnavailableError, RuntimeError)):
            await listen(model)


async def test_ollama_is_looked_for_on_this_machine_when_nothing_is_set() -> None:
    async with PydanticModels(patience=QUICK, environ={}) as models:
        assert models.open("ollama:qwen3").name == "ollama:qwen3"


def test_importing_models_reads_no_provider_and_opens_no_connection() -> None:
    script = (
        "import sys, windowpane.models.provider as p; p.PydanticModels().open('echo'); "
        "print(sorted({'openai', 'anthropic', 'google.genai'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=dict(os.environ)
    )

    assert done.stdout == "[]\n"


async def test_a_wire_server_can_run_as_a_process(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"text": ["Hel", "lo"]}, {"status": 400, "message": "no"}]', "utf-8")
    command = [sys.executable, "-m", "wire", "--protocol", "openai", "--script", str(script)]
    env = dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parents[1])}
    async with await anyio.open_process(command, env=env, stderr=None) as process:
        assert process.stdout is not None
        url = (await process.stdout.receive()).decode().strip()
        async with openai_models(url) as models:
            _, step = await listen(models.open("openai:gpt-4o"))
        process.terminate()

    assert step.text == "Hello"
