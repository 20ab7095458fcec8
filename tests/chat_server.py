"""A scripted OpenAI-compatible server, that can answer well, badly, late or not at all.

    with chat_server(script) as server:
        Endpoint(server.url, "any")

`script(request, n)` gets the decoded body and the number of the request, and returns a message (a dict), a text, a
whole response (a dict with `choices`), a pair (status, body), a triple with headers, or one of `"stall"`, `"drop"`,
`"half"` and `"garbage"`. A coroutine function may wait first.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import threading
from typing import Any


class Server:
    """The address, and every request that came."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


def response(message: Any, finish: str | None = None) -> dict[str, Any]:
    """A response around a message or a text."""
    message = {"role": "assistant", "content": message} if isinstance(message, str) else message
    reason = finish or ("tool_calls" if message.get("tool_calls") else "stop")
    words = len(str(message.get("content") or "").split())
    return {
        "id": "x", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": words, "total_tokens": 10 + words},
    }  # fmt: skip


@contextlib.contextmanager
def chat_server(script: Any):
    """Run a server in a thread of its own."""
    server, loop, ready = Server(), asyncio.new_event_loop(), threading.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _one(server, script, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def start() -> None:
        listening = await asyncio.start_server(handle, "127.0.0.1", 0)
        server.port = listening.sockets[0].getsockname()[1]
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)


async def _one(server: Server, script: Any, reader: Any, writer: Any) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    headers = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
    number = len(server.requests)
    server.requests.append(body)
    server.headers.append(headers)
    answer = script(body, number)
    if inspect.isawaitable(answer):
        answer = await answer
    if answer == "stall":
        await asyncio.sleep(3600)
    if answer == "drop":
        writer.transport.abort()
        return False
    status, extra = 200, {}
    if isinstance(answer, tuple):
        status, answer, *rest = answer
        extra = rest[0] if rest else {}
    if answer == "garbage":
        payload = b"<html>not json</html>"
    else:
        value = (
            answer
            if status != 200 or (isinstance(answer, dict) and "choices" in answer)
            else response(answer)
            if answer != "half"
            else response("half")
        )
        payload = json.dumps(value).encode()
    lines = [
        f"HTTP/1.1 {status} X",
        "content-type: application/json",
        f"content-length: {len(payload)}",
    ]
    lines += [f"{k}: {v}" for k, v in extra.items()]
    if answer == "half":
        payload = payload[: len(payload) // 2]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)
    await writer.drain()
    return answer != "half"
