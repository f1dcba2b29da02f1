"""An agent of Google's ADK with Windowpane's plugin: what its model gets, and what is on record."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import Field

from compat.frameworks.told import FAILED, RECORDED, conversation
from windowpane.integrations.google_adk import WindowpanePlugin
from windowpane.local.pane import LocalPane
from windowpane.testing import World


class Scripted(BaseLlm):
    """Says what it is told to, and keeps what it is given."""

    replies: list[Any]
    seen: list[list[tuple[str | None, list[Any]]]] = Field(default_factory=list)
    system: list[str] = Field(default_factory=list)
    offered: list[list[str]] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        self.seen.append(
            [(content.role, [_said(part) for part in content.parts or ()]) for content in llm_request.contents]
        )
        self.system.append(str(llm_request.config.system_instruction))
        self.offered.append(sorted(llm_request.tools_dict))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        yield LlmResponse(content=types.Content(role="model", parts=reply))


def _said(part: types.Part) -> Any:
    if part.function_call:
        return part.function_call.name
    return part.function_response.response if part.function_response else part.text


def own() -> str:
    """A tool of the agent's own."""
    return "mine"


async def run(pane: LocalPane, session_id: str, model: Scripted, *questions: str) -> list[str]:
    agent = LlmAgent(name="mine", model=model, instruction="Mine.", tools=[own])
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[WindowpanePlugin(pane, session_id)]))
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    answers: list[str] = []
    for question in questions:
        message = types.Content(role="user", parts=[types.Part(text=question)])
        events = [event async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)]
        final = [event.content for event in events if event.is_final_response() and event.content]
        answers += ["".join(part.text or "" for part in content.parts or ()) for content in final]
    await runner.close()
    return answers


@pytest.mark.client("Google ADK", "context", "tools", "memory")
async def test_runs_get_the_context_and_are_recorded(world: World) -> None:
    call = types.Part(function_call=types.FunctionCall(id="c1", name="files__read", args={"path": "a"}))
    model = Scripted(
        model="scripted",
        replies=[[types.Part(text="I look."), call], [types.Part(text="Done.")], [types.Part(text="Bye.")]],
    )
    async with world.pane() as pane:
        session = await pane.sessions.create()
        answers = await run(pane, session.id, model, "Read a.", "Thanks.")
        told = await conversation(pane, session.id)

    assert answers == ["Done.", "Bye."]
    assert told == RECORDED
    assert model.system[0].startswith("You are Pane.")
    assert "Be kind.\n\nMine." in model.system[0]
    assert model.seen[0] == [("user", ["Read a."])]
    assert model.seen[1] == [
        ("user", ["Read a."]),
        ("model", ["I look.", "files__read"]),
        ("user", [{"result": "contents of a"}]),
    ]
    assert model.seen[2] == [
        *model.seen[1],
        ("model", ["Done."]),
        ("user", ["Thanks."]),
    ]
    assert model.offered == [["files__read", "own"]] * 3


@pytest.mark.client("Google ADK", "failures")
async def test_a_run_that_fails_leaves_the_message_and_an_error(world: World) -> None:
    model = Scripted(model="scripted", replies=[RuntimeError("the model is down")])
    async with world.pane() as pane:
        session = await pane.sessions.create()
        with pytest.raises(RuntimeError):
            await run(pane, session.id, model, "Hello?")
        told = await conversation(pane, session.id)

    assert told == FAILED
