"""The whole loop, offline: simulate, grade, measure, select, export.

Learn: what each step takes and gives, on a stand-in agent that misbehaves on a labelled share of rollouts.
Needs: the base install; no key, no network, no model.
Takes: a few seconds.
Prints: pass@1, pass^4 and pass@4 with intervals, and what the selection dropped and why.
"""

import tempfile
from pathlib import Path

import whileai_hf as wai


@wai.tool  # the function is the tool; its signature is the schema
def get_order(order_id: str) -> dict:
    """Look up an order by id."""


data = wai.simulate(
    wai.seeded_agent([get_order]),  # a stand-in that misbehaves on a labelled share of rows
    tools=[get_order],
    system_prompt="Help customers with orders.",
    simulator=False,
    mode="rl",
    repeats=4,
    repeat_policy="fixed",
    budget=64,
)
scored = data.grade(judge=lambda row: {"reward": int(not row["seeded"])})
print(scored.pass_at)

rows = scored.select(mode="rl")
print(rows.report)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "train.jsonl"
    print(rows.export(path))
    print(f"{len(wai.load(path))} rows load back from {path.name}")
