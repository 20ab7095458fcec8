"""What a simulated rollout costs, how the cost grows, and what whileai pays for the same work.

Run: python tests/benchmarks/simulate.py [--peer-python PYTHON with whileai 0.131] [--large 100000]
Prints: CPU ms a rollout at two sizes and their ratio (the limit is 12 for ten times the rows), peak memory,
and the peer's CPU a row at 1,000 rows divided by ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import textwrap

OURS = """
    import json, resource, sys, time, warnings
    warnings.simplefilter("ignore")
    import whileai_hf as wai
    def get_order(order_id: str) -> dict:
        '''Look up an order by id.'''
    def refund_order(order_id: str, amount: float) -> dict:
        '''Refund an order.'''
    def search_orders(query: str) -> dict:
        '''Search the orders.'''
    tools = [get_order, refund_order, search_orders]
    wai.simulate(wai.seeded_agent(tools), tools=tools, budget=10, progress=False)
    start = time.process_time()
    data = wai.simulate(wai.seeded_agent(tools), tools=tools, system_prompt="Help customers with orders.", mode="rl", repeats=8,
                        repeat_policy="fixed", budget={rows}, progress=False)
    cpu = time.process_time() - start
    print(json.dumps([len(data), cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
PEER = """
    import json, time, warnings
    warnings.simplefilter("ignore")
    import whileai.simulations as wai
    def tool(name, *arguments):
        properties = {{a: {{"type": "string"}} for a in arguments}}
        return {{"type": "function", "function": {{"name": name, "description": name.replace("_", " "),
                "parameters": {{"type": "object", "properties": properties, "required": list(arguments)}}}}}}
    tools = [tool("get_order", "order_id"), tool("refund_order", "order_id", "amount"), tool("search_orders", "query")]
    start = time.process_time()
    data = wai.simulate(wai.seeded_agent(tools), tools=tools, system_prompt="Help customers with orders.", simulator=False, mode="rl",
                        repeats=8, repeat_policy="fixed", budget={rows})
    print(json.dumps([len(list(data.trajectories)), time.process_time() - start, 0]))
"""


def run(python, code, rows):
    done = subprocess.run(
        [python, "-c", textwrap.dedent(code).format(rows=rows)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python")
    parser.add_argument("--large", type=int, default=100_000)
    args = parser.parse_args()
    found = {}
    for rows in (1_000, args.large // 10, args.large):
        n, cpu, peak = found[rows] = run(sys.executable, OURS, rows)
        print(
            f"ours {n:>7} rollouts: {1000 * cpu / n:.3f} ms CPU a rollout, {cpu:.1f} s, peak {peak:.0f} MB"
        )
    ratio = found[args.large][1] / found[args.large // 10][1]
    print(f"time({args.large}) / time({args.large // 10}) = {ratio:.1f} (limit 12)")
    if args.peer_python:
        n, cpu, _ = run(args.peer_python, PEER, 1_000)
        ours = found[1_000]
        print(f"whileai {n} rollouts: {1000 * cpu / n:.3f} ms CPU a rollout")
        print(
            f"CPU a row, whileai / ours at 1,000 rows: {(cpu / n) / (ours[1] / ours[0]):.1f} (wanted 10)"
        )


if __name__ == "__main__":
    main()
