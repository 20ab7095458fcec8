"""The stateful tools of BFCL multi-turn as a world, and the equality of end states as a reward.

This file travels inside the exported environment `bfcl_state`. The tools run in this process; they are
the simulators of the Berkeley Function-Calling Leaderboard (package `bfcl-eval`, Apache-2.0).
"""

import copy
import importlib
import json

import whileai_hf as wai

CODE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"

#: Class -> module of its source.
MODULES = {
    "GorillaFileSystem": "gorilla_file_system", "TwitterAPI": "posting_api", "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
}  # fmt: skip


class BfclWorld:
    """Live simulators of one task; `call` never raises, `log` holds every call."""

    def __init__(self, spec, tools):
        self.log, self.methods = [], {}
        self.allowed = {t["function"]["name"] for t in tools or []}
        self.instances = {}
        for name in spec["classes"]:
            made = getattr(importlib.import_module(f"{CODE}.{MODULES[name]}"), name)()
            made._load_scenario(copy.deepcopy(spec["config"].get(name, {})))
            self.instances[name] = made
            for method in dir(made):
                if not method.startswith("_") and callable(getattr(made, method)):
                    self.methods[method] = getattr(made, method)

    def call(self, name, arguments):
        """Run one call."""
        status = "ok"
        try:
            given = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments or {}
            if name not in self.allowed or name not in self.methods:
                raise LookupError(f"no tool {name!r}")
            result = self.methods[name](**given)
        except Exception as error:  # noqa: BLE001 - a call that fails is what the agent sees
            result, status = {"error": f"{type(error).__name__}: {error}"}, "error"
        if isinstance(result, dict) and "error" in result:
            status = "error"
        self.log.append({"tool": name, "arguments": arguments, "result": result, "status": status})
        return result

    def state(self):
        """The public state, as BFCL compares it."""
        return {
            name: {k: plain(v) for k, v in vars(one).items() if not k.startswith("_")}
            for name, one in self.instances.items()
        }


def plain(value):
    """Copy a value into JSON types; the times of files and links upwards say nothing."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if hasattr(value, "__dict__"):
        return {
            k: plain(v)
            for k, v in vars(value).items()
            if k not in ("parent", "_parent", "_last_modified")
        }
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def world(row):
    """Build the world of a task."""
    return BfclWorld(row["world"], row["tools"])


def reward(row):
    """1 where the calls of the rollout leave the state that the reference calls leave, and the user was told."""
    made, wanted = world(row), world(row)
    for call in wai.tool_calls(row):
        if call.result is not None:
            made.call(call.name, call.raw if call.malformed else call.arguments)
    for name, arguments in row["privileged"]["calls"]:
        wanted.call(name, arguments)
    if made.state() != wanted.state():
        return {"reward": 0, "reason": "the end state differs", "failure_class": "state"}
    if not (row["final_text"] or "").strip():
        return {"reward": 0, "reason": "the user was told nothing", "failure_class": "silent"}
    return {"reward": 1, "reason": "the end state is that of the reference"}
