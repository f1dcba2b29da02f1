"""The app, as Django finds it."""

from django.apps import AppConfig


class WindowpaneConfig(AppConfig):
    """Windowpane in a Django site."""

    name = "windowpane.integrations.django"
    label = "windowpane"
    verbose_name = "Windowpane"
