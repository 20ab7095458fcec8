"""An endpoint that plays the stored solutions: an environment can be evaluated without a model."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.environment import playing
from whileai_hf.environment.environment import Environment


@dataclass(slots=True)
class ReferenceServer:
    """Where it listens, and every request that it got."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextlib.contextmanager
def reference_server(env: Environment) -> Iterator[ReferenceServer]:
    """Serve an OpenAI-compatible endpoint that answers each task with its solution, turn by turn."""
    known = {t.ask: t for split in ("train", "holdout") for t in env.tasks(split)}
    out = ReferenceServer("")

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        out.requests.append(body)
        task = known.get(chat.first_ask(body["messages"]))
        at = sum(m["role"] == "assistant" for m in body["messages"])
        turns = (task.solution or ()) if task else ()
        turn = turns[at] if at < len(turns) else {"content": "There is nothing more to do."}
        message = playing.Script([turn]).respond([], None).messages[0]  # type: ignore[arg-type]
        return _completion(body, playing.wire([message])[0], len(out.requests))

    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer))
    server.daemon_threads = True
    out.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield out
    finally:
        server.shutdown()
        server.server_close()


def _completion(body: dict[str, Any], message: dict[str, Any], n: int) -> dict[str, Any]:
    calls = [{**c, "id": f"call_{n}_{i}"} for i, c in enumerate(message.get("tool_calls") or [])]
    said = {**message, **({"tool_calls": calls} if calls else {})}
    return {
        "id": f"chatcmpl-{n}", "object": "chat.completion", "created": 0, "model": body.get("model", "reference"),
        "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def _handler(answer: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "reference", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(answer(body))

        def _send(self, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    return Handler
