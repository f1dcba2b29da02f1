"""A real embeddings endpoint on this machine."""

import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Literal

DIMENSIONS = 64


class Endpoint:
    """Speaks OpenAI's embeddings protocol; texts are near each other when they share words."""

    def __init__(self) -> None:
        self.behaviour: Literal["good", "refuses", "no json", "no vectors", "too few", "slow"] = "good"
        self.texts: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.authorization: list[str | None] = []
        self.go_on = Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append(body)
                endpoint.authorization.append(self.headers["Authorization"])
                if endpoint.behaviour == "slow":
                    endpoint.go_on.wait(20)
                status, answer = endpoint.answer(body["input"])
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the base class's)
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer(self, texts: list[str]) -> tuple[int, bytes]:
        """Answer as the present behaviour says."""
        rows = [{"index": i, "embedding": embedding(text)} for i, text in enumerate(texts)]
        match self.behaviour:
            case "refuses":
                return 503, b"{}"
            case "no json":
                return 200, b"<html>"
            case "no vectors":
                return 200, b'{"data": [{"index": 0}]}'
            case "too few":
                return 200, json.dumps({"data": rows[1:]}).encode()
            case _:
                self.texts += texts
                return 200, json.dumps({"data": rows[::-1]}).encode()

    def close(self) -> None:
        """Stop answering."""
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def embedding(text: str) -> list[float]:
    """Return a vector that counts the words of a text."""
    vector = [0.01] * DIMENSIONS
    for word in text.lower().replace(":", " ").replace("_", " ").split():
        vector[hashlib.sha256(word.encode()).digest()[0] % DIMENSIONS] += 1.0
    return vector
