"""A Django site in one file that answers with Windowpane: `python django_site.py "How do I add a rule?"`.

It keeps everything in the folder `django_site_data` where it is run. In a site of your own, put the app, the setting
and the URLs where they belong; the rest is Django's.
"""

import sys
from pathlib import Path

import django
from django.conf import settings
from django.test import Client
from django.urls import include, path

import windowpane

FOLDER = Path("django_site_data").resolve()
urlpatterns = [path("", include("windowpane.integrations.django.urls"))]


def site(folder: Path) -> None:
    """Set the site up, with everything that it keeps in one folder."""
    settings.configure(
        ALLOWED_HOSTS=["testserver", "localhost"],
        CACHES={"default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": folder}},
        INSTALLED_APPS=["windowpane.integrations.django"],
        ROOT_URLCONF=__name__,
        SECRET_KEY="only-an-example",  # noqa: S106
        WINDOWPANE={"AGENTS": folder / "agents", "DATA": folder, "STORE": "cache:default"},
    )
    if not (folder / "agents").exists():
        windowpane.init_agent(folder / "agents" / "guide")
    django.setup()


def main(question: str) -> None:
    """Ask through the view, then through the functions, and look at what the session holds."""
    from windowpane.integrations.django import PromptBuilder, get_context_manager

    answer = Client().post("/get_agent_response/", {"session_id": "one", "question": question})
    print(answer.json()["resp"])
    manager = get_context_manager()
    manager.add_user_message("one", "And what did I ask first?")
    messages = manager.get_formatted_messages_for_api("one")
    prompt = PromptBuilder().build(current_url="https://github.com/", user_timezone="Europe/Oslo")
    manager.add_assistant_message("one", f"{len(messages)} messages after {len(prompt)} characters", model="mine")
    print(manager.get_session_stats("one"))
    manager.close()


if __name__ == "__main__":
    site(FOLDER)
    main(sys.argv[1] if len(sys.argv) > 1 else "How do I add a rule?")
