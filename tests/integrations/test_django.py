from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings as django_settings
from django.test import Client, override_settings
from django.urls import include, path

from patience import PATIENCE_S
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError, InvalidSettingError
from windowpane.integrations.django import ContextManager, ContextMode, PromptBuilder, get_context_manager
from windowpane.integrations.django.conf import settings
from windowpane.settings import Settings
from windowpane.testing import World

site: Any = django_settings
urlpatterns = [path("", include("windowpane.integrations.django.urls"))]

if not site.configured:
    site.configure(
        ALLOWED_HOSTS=["testserver"],
        INSTALLED_APPS=["windowpane.integrations.django"],
        ROOT_URLCONF=__name__,
        SECRET_KEY="only-a-test",
    )
    django.setup()


def cache(folder: Path) -> dict[str, Any]:
    backend = "django.core.cache.backends.filebased.FileBasedCache"
    return {"default": {"BACKEND": backend, "LOCATION": str(folder), "TIMEOUT": 3600, "OPTIONS": {"MAX_ENTRIES": 500}}}


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    world = World(tmp_path / "agents")
    world.write("agent.yaml", "model: echo\nworking_context: false\n")
    world.write("prompts/sites/sec.gov.md", "Cite filings.")
    world.rule("tone", "Be kind.", include="always")
    given = {"AGENTS": tmp_path / "agents", "DATA": tmp_path, "STORE": "cache:default"}
    with override_settings(CACHES=cache(tmp_path), WINDOWPANE=given, ROOT_URLCONF=__name__):
        get_context_manager.cache_clear()
        yield tmp_path
        get_context_manager().close()


@pytest.fixture
def manager(folder: Path) -> ContextManager:
    return get_context_manager()


@pytest.mark.client("Django", "context", "memory")
@pytest.mark.spec("S4.38", "S4.39", "S4.40", "S4.41", "S4.42", "S4.51", "S4.62", "S4.63")
def test_the_standard_flow_of_existing_code_is_a_recorded_turn(manager: ContextManager) -> None:
    manager.update_metadata(
        "s", ContextMode.THINKING, "https://www.sec.gov/edgar", "America/New_York", "2026-02-03T12:00:00Z"
    )
    manager.add_fetched_context("s", "js_scraping", "The page says 42.", "https://www.sec.gov/edgar")
    manager.add_user_message("s", "First?")
    first = manager.get_formatted_messages_for_api("s")
    manager.add_assistant_message("s", "One.", "mine", [{"title": "Filing", "url": "https://x"}], ["web_search"], 850)
    manager.add_user_message("s", "Second?")
    second = manager.get_formatted_messages_for_api("s")
    manager.add_assistant_message("s", "Two.")
    full = manager.get_full_context("s")
    after = manager.get_formatted_messages_for_api("s")

    assert first[-1] == {"role": "user", "content": "First?"}
    assert any("Be kind." in message["content"] for message in first)
    assert any("The page says 42." in message["content"] for message in first)
    assert not any("You are Pane." in message["content"] for message in first)
    assert [m["content"] for m in second if m["content"] in ("First?", "One.", "Second?")] == [
        "First?",
        "One.",
        "Second?",
    ]
    history = full["conversation_history"]
    assert [(entry["role"], entry["content"]) for entry in history] == [
        ("user", "First?"),
        ("assistant", "One."),
        ("user", "Second?"),
        ("assistant", "Two."),
    ]
    assert history[1]["metadata"] == {
        "model": "mine",
        "sources_used": [{"title": "Filing", "url": "https://x"}],
        "tools_used": ["web_search"],
        "response_time_ms": 850,
    }
    assert after == [{"role": entry["role"], "content": entry["content"]} for entry in history]

    async def recorded(engine: Any) -> list[str]:
        state = await manager.state(engine, "s")
        context = await engine.past.context(state.id, 2)
        return [str(item.ref) for item in context.items]

    assert manager.running.ask(recorded) == ["rule:tone"]


def test_what_is_fetched_after_the_message_is_sent_with_it(manager: ContextManager) -> None:
    manager.add_user_message("s", "What does the page say?")
    before = manager.get_formatted_messages_for_api("s")
    manager.add_fetched_context("s", "js_scraping", "The page says 42.", "https://www.sec.gov/edgar")
    manager.add_fetched_context("s", "web_search", "Another says 43.", "https://b.example/")
    after = manager.get_formatted_messages_for_api("s")
    manager.add_assistant_message("s", "It says 42.")
    manager.add_fetched_context("s", "web_search", "Too late.", "https://c.example/")
    history = manager.get_full_context("s")["conversation_history"]

    def fetched(messages: list[dict[str, str]]) -> list[bool]:
        texts = ("The page says 42.", "Another says 43.")
        return [any(text in message["content"] for message in messages) for text in texts]

    assert (fetched(before), fetched(after)) == ([False, False], [True, True])
    assert after[-1] == {"role": "user", "content": "What does the page say?"}
    assert [(entry["role"], entry["content"]) for entry in history] == [
        ("user", "What does the page say?"),
        ("assistant", "It says 42."),
    ]


@pytest.mark.spec("S4.24", "S4.26", "S4.27", "S4.43", "S4.44", "S4.45", "S4.46", "S4.50")
def test_what_a_session_holds_can_be_read_as_one_object(manager: ContextManager) -> None:
    manager.update_metadata("s", mode="research", current_url="https://a.example/")
    about = {"title": "Title", "site_name": "Site"}
    manager.add_fetched_context("s", "web_search", "Found.", "https://b.example/", about)
    manager.set_system_prompt("s", "Be brief.")

    full, metadata, stats = (
        manager.get_full_context("s"),
        manager.get_session_metadata("s"),
        manager.get_session_stats("s"),
    )

    stamps = [full["metadata"].pop("timestamp"), full["fetched_context"]["web_search"][0].pop("timestamp")]
    assert all(stamp.endswith("+00:00") for stamp in stamps)
    assert full == {
        "system_prompt": "Be brief.",
        "metadata": {
            "session_id": "s",
            "mode": "research",
            "current_url": "https://a.example/",
            "user_timezone": None,
            "user_time": None,
            "token_count": 0,
            "message_count": 0,
        },
        "fetched_context": {
            "web_search": [
                {
                    "source_type": "web_search",
                    "content": "Found.",
                    "url": "https://b.example/",
                    "extracted_data": about,
                }
            ],
            "js_scraping": [],
        },
        "conversation_history": [],
    }
    assert (metadata.mode, metadata.token_count) == (ContextMode.RESEARCH, 0)
    assert stats == {
        "mode": "research",
        "message_count": 0,
        "token_count": 0,
        "fetched_context_counts": {"web_search": 1, "js_scraping": 0},
        "total_fetched_items": 1,
    }


@pytest.mark.spec("S4.47", "S4.48", "S4.49")
def test_each_part_of_a_session_can_be_cleared_by_itself(manager: ContextManager) -> None:
    def counts() -> tuple[int, dict[str, int]]:
        stats = manager.get_session_stats("s")
        return stats["message_count"], stats["fetched_context_counts"]

    manager.add_fetched_context("s", "web_search", "Found.", "https://b.example/")
    manager.add_fetched_context("s", "js_scraping", "Read.", "https://a.example/")
    manager.add_user_message("s", "Hi")
    manager.add_assistant_message("s", "Hello.")
    seen = [counts()]
    manager.clear_fetched_context("s", source_type="js_scraping")
    seen.append(counts())
    manager.clear_conversation_history("s")
    seen.append(counts())
    manager.clear_session("s")
    seen.append(counts())

    assert seen == [
        (2, {"web_search": 1, "js_scraping": 1}),
        (2, {"web_search": 1, "js_scraping": 0}),
        (0, {"web_search": 1, "js_scraping": 0}),
        (0, {"web_search": 0, "js_scraping": 0}),
    ]


@pytest.mark.spec("S4.3", "S4.10", "S4.14", "S4.15", "S4.35")
def test_the_prompt_builder_reads_the_agents_prompts(manager: ContextManager) -> None:
    built = PromptBuilder().build(
        current_url="https://www.sec.gov/edgar",
        system_prompt="Be brief.",
        user_timezone="America/New_York",
        user_time="2026-02-03T12:00:00Z",
    )

    places = [
        built.index(text) for text in ("You are Pane.", "Cite filings.", "www.sec.gov", "America/New_York", "Be brief.")
    ]
    assert places == sorted(places)
    assert built.endswith("Be brief.")


def test_what_cannot_be_used_is_refused(manager: ContextManager) -> None:
    with pytest.raises(InvalidInputError, match="no kind of fetched context"):
        manager.add_fetched_context("s", "fax", "text")
    with pytest.raises(InvalidInputError, match="a session's name"):
        manager.add_user_message("\n", "Hi")


@pytest.mark.spec("S4.52", "S4.53", "S4.56", "S4.57", "S4.58", "S4.59")
def test_the_views_answer_stream_take_pages_in_and_clear(folder: Path) -> None:
    client: Any = Client()
    asked = {"session_id": "s", "question": "Hello?", "current_url": "https://a.example/"}

    chat = client.get("/get_chat_response/", asked).json()
    stream = client.get("/get_chat_response_stream/", asked)
    pieces = [json.loads(line.removeprefix("data: ")) for line in stream.getvalue().decode().split("\n\n") if line]
    page = client.post(
        "/input_webtext/", {"session_id": "s", "textContent": "Read.", "currentUrl": "https://a.example/"}
    )
    agent = client.post("/get_agent_response/", json.dumps(asked), content_type="application/json").json()
    stats = client.get("/api/get_memory_stats/", {"session_id": "s"}).json()
    cleared = client.post("/clear_messages/", {"session_id": "s"}).json()

    assert chat["resp"].startswith("I am the built-in offline model")
    assert (chat["mode"], chat["message_count"], chat["waiting"]) == ("thinking", 2, False)
    assert "".join(piece["content"] for piece in pieces).startswith("I am the built-in offline model")
    assert [piece["done"] for piece in pieces][-2:] == [False, True]
    assert page.json()["fetched_context_counts"] == {"web_search": 0, "js_scraping": 1}
    assert (agent["mode"], agent["message_count"]) == ("normal", 6)
    assert (stats["message_count"], stats["total_fetched_items"]) == (6, 1)
    assert (cleared["message_count"], cleared["total_fetched_items"]) == (0, 1)


@pytest.mark.spec("S4.54", "S4.55", "S4.60")
def test_the_views_search_the_web_and_fetch_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.dumps({"results": [{"url": "https://b.example/", "title": "B", "content": "Found."}]})
    pages = {"/search": ("application/json", found), "/page": ("text/html", "<p>The page says 42, and more of it.</p>")}
    with web(pages) as address:
        monkeypatch.setenv("SEARXNG_URL", address)
        allowed = [address.removeprefix("http://")]
        with override_settings(WINDOWPANE={**site.WINDOWPANE, "SEARCH_ENGINE": "searxng", "FETCH_ALLOW": allowed}):
            client: Any = Client()
            answer = client.get("/get_adv_response/", {"session_id": "s", "question": "What is b?"}).json()
            stream = client.get("/get_adv_response_stream/", {"session_id": "t", "question": "What is b?"})
            done = stream.getvalue().decode().rstrip().endswith('"done": true}')
            fetched = client.post("/api/auto_scrape/", {"session_id": "s", "current_url": f"{address}/page"}).json()

    assert (answer["mode"], answer["fetched_context_counts"]) == ("research", {"web_search": 1, "js_scraping": 0})
    assert done
    assert fetched["fetched_context_counts"] == {"web_search": 1, "js_scraping": 1}


@pytest.mark.spec("S4.16")
def test_a_request_says_which_session_it_is_about_and_the_view_which_mode(folder: Path) -> None:
    client: Any = Client()

    query = client.get("/get_chat_response/", {"session_id": "a", "question": "Hello?"}).json()
    form = client.post("/get_agent_response/", {"session_id": "b", "question": "Hello?"}).json()
    body = json.dumps({"session_id": "a", "question": "Hello?"})
    json_body = client.post("/get_agent_response/", body, content_type="application/json").json()
    unnamed = client.get("/get_chat_response/", {"question": "Hello?"})

    assert [(answer["mode"], answer["message_count"]) for answer in (query, form, json_body)] == [
        ("thinking", 2),
        ("normal", 2),
        ("normal", 4),
    ]
    assert (unnamed.status_code, unnamed.json()["error"]) == (400, "session_id is missing")


def test_what_a_view_cannot_do_it_says(folder: Path) -> None:
    client: Any = Client()

    missing = client.get("/get_chat_response/", {"session_id": "s"})
    wrong = client.post("/get_agent_response/", "[", content_type="application/json")
    private = client.post("/api/auto_scrape/", {"session_id": "s", "current_url": "http://10.0.0.1/"})

    assert (missing.status_code, missing.json()) == (400, {"error": "question is missing", "code": "invalid_input"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "the body is not JSON")
    assert (private.status_code, private.json()["code"]) == (400, "fetch_refused")
    assert client.post("/get_chat_response/", {}).status_code == 405


def test_sessions_of_two_owners_are_two_sessions(manager: ContextManager) -> None:
    manager.of("user:ada").add_user_message("s", "Mine")

    assert manager.get_session_stats("s")["message_count"] == 0
    assert manager.of("user:ada").get_session_stats("s")["message_count"] == 1


@pytest.mark.spec("S4.1", "S4.4", "S4.5", "S4.21")
def test_workers_share_sessions_and_lose_nothing(folder: Path) -> None:
    script = [sys.executable, str(Path(__file__).parent / "django_worker.py"), str(folder)]
    workers = [subprocess.Popen([*script, name]) for name in ("one", "two")]
    ended = [worker.wait(timeout=PATIENCE_S) for worker in workers]

    assert ended == [0, 0]
    assert get_context_manager().get_session_stats("s")["message_count"] == 20


@pytest.mark.client("Django", "failures")
@pytest.mark.spec("S4.17", "S4.19", "S4.20", "S4.23")
def test_a_store_that_is_away_is_a_503_with_a_time_to_try_again(folder: Path) -> None:
    client: Any = Client()
    asked = {"session_id": "a", "question": "Hello?"}
    before = client.get("/get_chat_response/", asked)
    (file,) = folder.rglob("windowpane.db")
    file.rename(folder / "aside")
    away = client.get("/get_chat_response/", asked)
    (folder / "aside").rename(file)
    after = client.get("/get_chat_response/", asked)

    assert [answer.status_code for answer in (before, away, after)] == [200, 503, 200]
    assert (away.json()["code"], away.headers["Retry-After"]) == ("store_replaced", "5")


def test_a_process_that_is_full_is_a_429_with_a_time_to_try_again(folder: Path) -> None:
    client: Any = Client()
    asked = {"session_id": "a", "question": "Hello?"}

    async def take_place(engine: Engine) -> None:
        places.enter_context(engine.admission.beginning("ann"))

    async def sessions(engine: Engine) -> int:
        return len((await engine.store.sessions(None, limit=9)).rows)

    with override_settings(WINDOWPANE={**site.WINDOWPANE, "MAX_TURNS": 1}):
        running = get_context_manager().running
        with ExitStack() as places:
            running.ask(take_place)
            full = [client.get(f"/get_chat_response{form}/", asked) for form in ("", "_stream")]
            made = running.ask(sessions)
        after = client.get("/get_chat_response/", asked)

    assert [(answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) for answer in full] == [
        (429, "worker_full", "2")
    ] * 2
    assert (made, after.status_code) == (0, 200)


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("cache:file", ("sqlite:////srv/cache/windowpane.db", "ephemeral", 3600.0, 500)),
        ("cache:redis", ("redis://redis:6379/0", "ephemeral", 300.0, 300)),
        ("cache:memory", ("memory:", "durable", 3600.0, 500)),
        ("database:default", ("sqlite:////srv/db.windowpane.db", "durable", 3600.0, 500)),
        ("database:pg", ("postgresql://ada:p%40ss@db:5432/site", "durable", 3600.0, 500)),
        ("memory:", ("memory:", "durable", 3600.0, 500)),
    ],
)
def test_sessions_are_kept_beside_the_sites_cache_or_database(store: str, expected: tuple[object, ...]) -> None:
    backends = "django.core.cache.backends"
    caches: dict[str, Any] = {
        "default": {"BACKEND": f"{backends}.dummy.DummyCache"},
        "file": {
            "BACKEND": f"{backends}.filebased.FileBasedCache",
            "LOCATION": "/srv/cache",
            "TIMEOUT": 3600,
            "OPTIONS": {"MAX_ENTRIES": 500},
        },
        "redis": {"BACKEND": f"{backends}.redis.RedisCache", "LOCATION": "redis://redis:6379/0"},
        "memory": {"BACKEND": f"{backends}.locmem.LocMemCache", "TIMEOUT": None},
    }
    databases = {
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "/srv/db.sqlite3"},
        "pg": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "site",
            "USER": "ada",
            "PASSWORD": "p@ss",
            "HOST": "db",
            "PORT": 5432,
        },
    }
    with override_settings(CACHES=caches, WINDOWPANE={"STORE": store, "DATA": Path("/srv")}):
        site.DATABASES = databases
        chosen: Settings = settings()
        with override_settings(WINDOWPANE={"STORE": "cache:default"}), pytest.raises(InvalidSettingError):
            settings()
        with override_settings(WINDOWPANE={"STORE": "cache:nobody"}), pytest.raises(InvalidSettingError):
            settings()
        site.DATABASES = {}

    assert (chosen.store_url, chosen.profile, chosen.expire_after_s, chosen.max_sessions) == expected


@contextmanager
def web(pages: dict[str, tuple[str, str]]) -> Generator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = pages[self.path.partition("?")[0]]
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
