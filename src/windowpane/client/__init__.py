"""The API of a server, over HTTP: a pane like the one that `windowpane.open()` gives.

async with Client("http://127.0.0.1:8470") as pane:
    session = await pane.sessions.create()
    turn = await pane.ask(session.id, "How do I add a rule?")
    print(turn.text)
"""

from windowpane.client.pane import Client

__all__ = ["Client"]
