"""The debug log: each request before it is sent, on stderr, without secrets."""

import asyncio
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.talking import KEY, QUICK, READ, listen, message
from windowpane.context.messages import ToolCall
from windowpane.context.request import CallSettings, RequestMessage
from windowpane.errors import ModelAuthError
from windowpane.models.debug_log import log_request
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Reply, ScriptedModel
from windowpane.testing import World, drain
from windowpane.text.redact import REDACTED, redacted
from wire import openai_chat
from wire.reply import WireReply
from wire.server import Answer, running

ON = {"LLM_DEBUG_LOG": "true"}
ALL = {**ON, "LLM_DEBUG_VERBOSE": "true"}
SETTINGS = CallSettings(model="openai:gpt-4o", temperature=0.2, max_output_tokens=100, mode="thinking")
MESSAGES = (
    RequestMessage(role="system", content="You are Pane.", part="core", name="core"),
    RequestMessage(role="user", content="Read it.\n\n" + "x" * 600, part="history", name="message 1"),
    message("assistant", "", ToolCall("call_1", "files_read", '{"path": "a"}')),
    message("tool", "", call_id="call_1"),
    RequestMessage(role="user", content="And?", part="message"),
)


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, with the number of the request left out."""
    captured = capsys.readouterr()
    assert captured.out == ""
    return re.sub(r"(LLM request) \d+", r"\1 N", captured.err)


def send(environ: dict[str, str], messages: tuple[RequestMessage, ...] = MESSAGES) -> None:
    log_request("openai:gpt-4o", messages, [READ], SETTINGS, environ=environ)


@pytest.mark.spec("S4.74", "S4.76", "S4.77", "S4.78")
def test_a_request_is_printed_with_its_call_site_model_sizes_and_cut_messages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    send(ON)

    assert printed(capsys) == (
        "──── LLM request N ────\n"
        f"call site: {__name__}.send\n"
        "provider: openai\n"
        "model: gpt-4o\n"
        "stream: true\n"
        "mode: thinking\n"
        "settings: temperature=0.2, max_output=100\n"
        "tools: 1 – files_read\n"
        "messages: 5, 627 characters\n"
        "  1 system (core core), 13 characters\n"
        "    │ You are Pane.\n"
        "  2 user (history message 1), 610 characters\n"
        "    │ Read it.\n"
        "    │ \n"
        f"    │ {'x' * 490}\n"
        "    … 110 more characters\n"
        "  3 assistant (history), 0 characters\n"
        "    calls files_read (call_1)\n"
        '    │ {"path": "a"}\n'
        "  4 tool (history), 0 characters\n"
        "  5 user (message), 4 characters\n"
        "    │ And?\n"
        "────\n"
    )


@pytest.mark.spec("S4.75")
def test_verbose_cuts_nothing_and_prints_what_the_tools_are(capsys: pytest.CaptureFixture[str]) -> None:
    send(ALL)

    text = printed(capsys)
    assert f"    │ {'x' * 600}\n" in text
    assert "more characters" not in text
    assert (
        "  files_read\n"
        "    │ Reads a file.\n"
        '    │ {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}\n'
    ) in text


@pytest.mark.spec("S4.74")
@pytest.mark.parametrize("value", [None, "", "false", "0", "no", "maybe"])
def test_nothing_is_printed_unless_it_is_asked_for(value: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    send({"LLM_DEBUG_VERBOSE": "true"} | ({} if value is None else {"LLM_DEBUG_LOG": value}))

    assert printed(capsys) == ""


@pytest.mark.spec("S4.76", "S4.79")
async def test_a_request_is_on_the_screen_before_the_provider_answers(capsys: pytest.CaptureFixture[str]) -> None:
    text = ""
    seen = asyncio.Event()
    frames = openai_chat.frames(WireReply(("Hello.",)))
    async with running(Answer((seen, *frames))) as server, anyio.create_task_group() as tasks:
        environ = {**ON, "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}
        async with PydanticModels(patience=QUICK, environ=environ) as models:
            finished = asyncio.Event()

            async def call() -> None:
                await listen(models.open("openai:gpt-4o"), (message("user", f"My key is {KEY}."),))
                finished.set()

            tasks.start_soon(call)
            await server.wait_for_requests(1)
            text = printed(capsys)
            seen.set()
            await finished.wait()

    assert "call site: models.talking.listen\nprovider: openai\nmodel: gpt-4o\nstream: true\n" in text
    assert text.endswith(f"    │ My key is {REDACTED}.\n────\n")
    assert printed(capsys) == ""


async def test_a_call_that_fails_was_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    async with running(openai_chat.problem(401, "no")) as server:
        environ = {**ON, "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}
        async with PydanticModels(patience=QUICK, environ=environ) as models:
            with pytest.raises(ModelAuthError):
                await listen(models.open("openai:gpt-4o"))

    assert printed(capsys).count("──── LLM request N ────") == 1


async def test_echo_and_scripted_models_are_printed_like_any_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_DEBUG_LOG", "true")
    async with PydanticModels(scripts=[ScriptedModel("demo", [Reply("ok")])]) as models:
        await listen(models.open("echo"))
        await listen(models.open("scripted:demo"))

    text = printed(capsys)
    assert re.findall("call site: .*\nprovider: .*\nmodel: .*", text) == [
        "call site: models.talking.listen\nprovider: echo\nmodel: echo",
        "call site: models.talking.listen\nprovider: scripted\nmodel: demo",
    ]


async def test_the_log_can_be_turned_on_while_the_process_runs(capsys: pytest.CaptureFixture[str]) -> None:
    environ: dict[str, str] = {}
    async with PydanticModels(environ=environ) as models:
        await listen(models.open("echo"))
        before = printed(capsys)
        environ |= ON
        await listen(models.open("echo"))

    assert (before, printed(capsys).count("──── LLM request N ────")) == ("", 1)


@pytest.mark.spec("S4.79")
async def test_the_call_site_of_a_turn_is_the_turns_own_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_DEBUG_LOG", "true")
    world = World(tmp_path)
    world.says("Hello.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Hi"))

    assert "call site: windowpane.turn.run._call_model\n" in printed(capsys)


def test_text_cannot_pass_for_a_line_of_the_log_or_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    send(ON, (message("user", "a\n────\nmodel: other\r\x1b[2J\u2028b\ud800"),))

    assert printed(capsys).endswith("    │ a\n    │ ────\n    │ model: other\\r\\x1b[2J\\u2028b\\ud800\n────\n")


def test_a_screen_that_is_gone_does_not_stop_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)

    send(ON)


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAplanted\nsecond-planted\n-----END RSA PRIVATE KEY-----"
PLANTED = {
    "openai": "sk-abcdefghijklmnopqrstuvwxplanted",
    "openai project": "sk-proj-Abc_def-ghijklmnopqrstuvwxplanted",
    "anthropic": "sk-ant-api03-abcdefgh_ijklmnop-planted",
    "openrouter": "sk-or-v1-0123456789abcdefplanted",
    "google": "AIzaSyA1234567890abcdefghijklmnoplanted",
    "github": "ghp_abcdefghijklmnopqrstuvwxyz01planted",
    "github app": "ghs_abcdefghijklmnopqrstuvwxyz01planted",
    "github fine-grained": "github_pat_11ABCDEFG0_abcdefghijplanted",
    "gitlab": "glpat-abcdefghij_klmplanted",
    "slack": "xoxb-123456789012-abcdefplanted",
    "slack app": "xapp-1-A012345-abcdefplanted",
    "aws": "AKIAPLANTED123456789",
    "stripe": "sk_live_abcdefghijplanted",
    "groq": "gsk_abcdefghijklmnopqrstplanted",
    "hugging face": "hf_abcdefghijklmnopqrstplanted",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJlLXBsYW50ZWQ",
    "private key": PEM,
    "private key in JSON": json.dumps(PEM)[1:-1],
}


@pytest.mark.parametrize("secret", PLANTED.values(), ids=PLANTED.keys())
@pytest.mark.parametrize("around", ["{}", "It is {}", '{{"note": "{}"}}', "a\n{}", "first\\n{}", "`{}`", "x={}"])
def test_a_planted_key_is_taken_out(secret: str, around: str) -> None:
    assert redacted(around.format(secret)) == around.format(REDACTED)


def test_a_private_key_without_an_end_is_taken_out_to_the_end_of_the_text() -> None:
    assert redacted(f"Mine: {PEM.partition('-----END')[0]}") == f"Mine: {REDACTED}"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc.def-planted", "Authorization: [redacted]"),
        ("curl -H 'authorization: Basic dTpwbGFudGVk' x", "curl -H 'authorization: [redacted]' x"),
        ("send Bearer plantedplanted now", "send Bearer [redacted] now"),
        ("postgres://me:planted@db.example/x", "postgres://me:[redacted]@db.example/x"),
        ("redis://:pl@nted@cache.example:6379", "redis://:[redacted]@cache.example:6379"),
        ("password=planted&next=1", "password=[redacted]&next=1"),
        ("DB_PASSWORD: planted", "DB_PASSWORD: [redacted]"),
        ('{"password": "pla\\"nted", "user": "me"}', '{"password": [redacted], "user": "me"}'),
        ("{'api_key': 'planted', 'n': 1}", "{'api_key': [redacted], 'n': 1}"),
        ('{\\"apiKey\\": \\"planted\\"}', '{\\"apiKey\\": [redacted]\\"}'),
        ("api-key: planted", "api-key: [redacted]"),
        ('client_secret = "two planted words', "client_secret = [redacted]"),
        ("aws_secret_access_key=pl/anted+", "aws_secret_access_key=[redacted]"),
        ("https://x.example/?access_token=planted#f", "https://x.example/?access_token=[redacted]"),
        ("passphrase => planted;", "passphrase => [redacted];"),
    ],
)
def test_what_is_named_a_secret_is_taken_out(text: str, left: str) -> None:
    assert redacted(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096",
        "The bearer of good news, basically.",
        "Ask the secretary: she knows.",
        '{"password": {"type": "string"}}',
        "http://localhost:8000/me@example.org",
        "How do I change my password?",
        "a risk-averse, task-oriented disk-image-collection",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize("environ", [ON, ALL])
def test_keys_of_the_environment_are_taken_out_wherever_they_stand(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    secrets = {"MY_API_KEY": "plain-planted-words", "DB_PASSWORD": "plain-planted-words-2", "A_TOKEN": "short"}
    tool = replace(READ, description="plain-planted-words")
    call = ToolCall("c", "files_read", '{"a": "plain-planted-words-2"}')
    messages = (message("assistant", f"{'x' * 490}plain-planted-words", call), message("user", "short"))

    log_request("openai:gpt-4o", messages, [tool], SETTINGS, environ={**environ, **secrets})

    text = printed(capsys)
    assert "plain" not in text
    assert "    │ short\n" in text


@given(st.text(), st.sampled_from(sorted(PLANTED.values())), st.text())
def test_no_text_around_it_saves_a_key_from_being_taken_out(before: str, secret: str, after: str) -> None:
    text = redacted(f"{before} {secret} {after}")

    assert secret not in text
    assert "planted" not in text
