"""A Django app: Windowpane behind the functions and views that existing code calls.

INSTALLED_APPS = [..., "windowpane.integrations.django"]
WINDOWPANE = {"AGENTS": BASE_DIR / "agents", "STORE": "cache:default"}

from windowpane.integrations.django import ContextMode, PromptBuilder, get_context_manager
"""

from windowpane.integrations.django.manager import ContextManager, ContextMetadata, ContextMode, get_context_manager
from windowpane.integrations.django.prompts import PromptBuilder

__all__ = ["ContextManager", "ContextMetadata", "ContextMode", "PromptBuilder", "get_context_manager"]
