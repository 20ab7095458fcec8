"""Scripts of a policy for a local endpoint: the model's name picks one."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from whileai_hf import messages as chat
from whileai_hf.environment import playing


class Endpoint:
    """What was asked, and where."""

    def __init__(self, env, policies):
        self.env, self.policies, self.requests, self.url = env, policies, [], ""
        self.known = {t.ask: t for s in ("train", "holdout") for t in env.tasks(s)}

    def answer(self, body):
        self.requests.append(body)
        task = self.known[chat.first_ask(body["messages"])]
        at = sum(m["role"] == "assistant" for m in body["messages"])
        turns = self.policies[body["model"]](task)
        if isinstance(turns, int):
            return turns, {"error": {"message": "boom", "type": "server_error"}}
        turn = turns[at] if at < len(turns) else {"content": ""}
        said = playing.wire(playing.Script([turn]).respond([], None).messages)[0]
        for i, call in enumerate(said.get("tool_calls") or []):
            call["id"] = f"call_{len(self.requests)}_{i}"
        reason = turn.get("finish_reason") or ("tool_calls" if said.get("tool_calls") else "stop")
        return 200, {
            "id": "x", "object": "chat.completion", "created": 0, "model": body["model"],
            "choices": [{"index": 0, "message": said, "finish_reason": reason, "logprobs": None}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip


@contextlib.contextmanager
def endpoint(env, policies):
    """Serve policies: functions of a task that return agent turns, or an HTTP status."""
    made = Endpoint(env, policies)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):
            self._send(200, {"object": "list", "data": []})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*made.answer(body))

        def _send(self, status, body):
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def gold(task):
    return list(task.solution)


def call(name, arguments, **more):
    return {
        "content": "",
        "tool_calls": [{"function": {"name": name, "arguments": arguments}}],
        **more,
    }


def parallel(task):
    """The calls of the solution in one turn."""
    calls = [c for t in task.solution for c in t.get("tool_calls") or []]
    return (
        [{"content": "", "tool_calls": calls}, *list(task.solution)[-1:]] if calls else gold(task)
    )


POLICIES = {
    "gold": gold,
    "parallel": parallel,
    "nothing": lambda task: [],
    "wrong": lambda task: [
        call("get_order", {"order_id": "ORD-1"}),
        {"content": "Done, it is all done now."},
    ],
    "unknown_tool": lambda task: [
        call("no_such_tool", {"x": 1}),
        {"content": "It did not work at all."},
    ],
    "wrong_names": lambda task: [
        call("get_order", {"order": "ORD-1"}),
        {"content": "It did not work at all."},
    ],
    "malformed": lambda task: [
        call("get_order", '{"order_id": '),
        {"content": "It did not work at all."},
    ],
    "loops": lambda task: [call("get_order", {"order_id": "ORD-1"})] * 50,
    "cut": lambda task: [{"content": "I was cut off in the", "finish_reason": "length"}],
    "markup": lambda task: [{"content": '<tool_call>{"name": "get_order", "argu'}],
}
