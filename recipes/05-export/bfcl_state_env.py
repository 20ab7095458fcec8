"""Export the executable tools of BFCL multi-turn as an environment whose reward is the end state.

Learn   how a world of your own (here: live Python objects) and tasks of a benchmark become an environment
Needs   pip install bfcl-eval (its files and simulators; no model)
Takes   a few seconds
Prints  what was written, what was refused and why
"""

import ast
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import whileai_hf as wai

HERE = Path(__file__).parent
DATA = Path(find_spec("bfcl_eval").origin).parent / "data"
FILES = {"GorillaFileSystem": "gorilla_file_system", "TwitterAPI": "posting_api", "MessageAPI": "message_api", "TicketAPI": "ticket_api"}  # fmt: skip


def lines(path):
    return [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]


def called(text, parameters):
    """Read a reference call, which is written as Python: positional arguments get their names."""
    node = ast.parse(text, mode="eval").body
    names = list(parameters.get(node.func.id, {}))
    values = {names[i]: ast.literal_eval(a) for i, a in enumerate(node.args)}
    return [node.func.id, {**values, **{k.arg: ast.literal_eval(k.value) for k in node.keywords}}]


def main(path):
    docs = {c: lines(DATA / "multi_turn_func_doc" / f"{f}.json") for c, f in FILES.items()}
    answers = {
        a["id"]: a["ground_truth"]
        for a in lines(DATA / "possible_answer" / "BFCL_v4_multi_turn_base.json")
    }
    every = lines(DATA / "BFCL_v4_multi_turn_base.json")
    tasks, schemas = [t for t in every if set(t["involved_classes"]) <= set(FILES)], {}
    rows = []
    for task in tasks:
        classes = sorted(task["involved_classes"])
        given = [
            d
            for c in classes
            for d in docs[c]
            if d["name"] not in task.get("excluded_function", [])
        ]
        key = json.dumps([d["name"] for d in given])
        tools = schemas.setdefault(key, wai.tool_schemas(given))
        parameters = {d["name"]: d["parameters"]["properties"] for d in given}
        calls = [called(c, parameters) for turn in answers[task["id"]] for c in turn]
        asks = [m["content"] for turn in task["question"] for m in turn if m["role"] == "user"]
        row = dict(
            zip(
                ("messages", "tools", "task_id"),
                (conversation(asks), tools, task["id"]),
                strict=True,
            )
        )
        row["world"] = {
            "classes": classes,
            "config": {c: task["initial_config"].get(c, {}) for c in classes},
        }
        row["privileged"] = {
            "calls": calls,
            "solution": {"calls": calls, "final_text": "All of it is done."},
        }
        row["situation"] = {"task": task["id"], "classes": classes}
        rows.append(row)
    return wai.export_environment(
        wai.Rollouts.from_records(rows), path, name="bfcl_state", reward=".bfcl_world:reward", world=".bfcl_world:world",
        files=[HERE / "bfcl_world.py"], dependencies=["bfcl-eval>=2026.3"], band=None, max_turns=40, overwrite=True,
        description="BFCL multi-turn: stateful file system, posts, messages and tickets; the end state is the reward.",
    )  # fmt: skip


def conversation(asks):
    """Say everything at once: the end state, not the turn, is what is rewarded."""
    steps = "\n".join(f"{i}. {ask}" for i, ask in enumerate(asks, 1))
    return [
        {
            "role": "system",
            "content": "Do what the user asks with the tools, step by step, then say that it is done.",
        },
        {"role": "user", "content": steps},
    ]


if __name__ == "__main__":
    print(main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "envs" / "bfcl_state"))
