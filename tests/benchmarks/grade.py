"""What judging costs beside the judge: CPU of grade with a trivial judge, ours and whileai's in one run.

Run: python tests/benchmarks/grade.py [--peer-python PYTHON with whileai 0.131] [--rows 100000]
Prints: CPU of `grade` on 100,000 rollouts with messages, with one judge that reads no column and one that reads a
short one; the CPU of decoding the messages alone, which a judge that does not read them must not pay; whileai's CPU
for the same rows over ours (it should be above 1).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import textwrap
import time
import warnings

import whileai_hf as wai

PEER = """
    import json, time, warnings
    warnings.simplefilter("ignore")
    import whileai.simulations as wai
    rows = [{{"id": f"t{{i}}", "scenario_id": f"t{{i // 8}}", "prompt": f"task {{i // 8}}", "final_text": f"done {{i}}",
             "steps": [{{"tool": "get_order", "arguments": {{"order_id": f"ORD-{{i}}"}}, "result": {{"status": "shipped"}}}}]}}
            for i in range({rows})]
    start = time.process_time()
    wai.run_judge(rows, lambda row: {{"reward": len(row["final_text"]) % 2}}, judge_name="trivial")
    print(json.dumps(time.process_time() - start))
"""


def rollouts(n: int) -> wai.Rollouts:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "get_order", "arguments": {"order_id": "ORD-1"}},
    }
    return wai.Rollouts.from_records(
        {
            "task_id": f"t{i // 8}", "rollout_id": f"r{i}", "final_text": f"done {i}",
            "messages": [
                {"role": "user", "content": f"task {i // 8}"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": '{"status": "shipped"}'},
                {"role": "assistant", "content": f"done {i}"},
            ],
        }
        for i in range(n)
    )  # fmt: skip


def cpu(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python")
    parser.add_argument("--rows", type=int, default=100_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    data = rollouts(args.rows)
    wai.grade(data.select(range(100)), lambda row: 1, progress=False)
    blind = cpu(lambda: wai.grade(data, lambda row: 1, progress=False))
    short = cpu(lambda: wai.grade(data, lambda row: len(row["final_text"]) % 2, progress=False))
    decoding = cpu(lambda: data.with_format(None)["messages"][:])
    print(
        f"{args.rows:,} rows: a judge that reads nothing {blind:.2f} s CPU, the final text {short:.2f} s"
    )
    print(f"decoding the messages alone {decoding:.2f} s")
    if args.peer_python:
        code = textwrap.dedent(PEER).format(rows=args.rows)
        done = subprocess.run(
            [args.peer_python, "-c", code], capture_output=True, text=True, check=True
        )
        theirs = json.loads(done.stdout.strip().splitlines()[-1])
        print(f"whileai {theirs:.2f} s CPU, {theirs / short:.1f} x ours")


if __name__ == "__main__":
    main()
