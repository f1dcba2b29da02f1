"""Where the views are: `path("", include("windowpane.integrations.django.urls"))`."""

from django.urls import path

from windowpane.integrations.django import views

app_name = "windowpane"
urlpatterns = [
    path("get_chat_response/", views.get_chat_response),
    path("get_chat_response_stream/", views.get_chat_response_stream),
    path("get_adv_response/", views.get_adv_response),
    path("get_adv_response_stream/", views.get_adv_response_stream),
    path("get_agent_response/", views.get_agent_response),
    path("input_webtext/", views.input_webtext),
    path("clear_messages/", views.clear_messages),
    path("api/get_memory_stats/", views.get_memory_stats),
    path("api/auto_scrape/", views.auto_scrape),
]
