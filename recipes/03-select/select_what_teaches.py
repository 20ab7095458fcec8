"""Keep what teaches: RL rows, SFT rows beside a random control, pairs, and the next round of tasks.

Learn: the gates, what each dropped and why. Needs: nothing. Takes: seconds.
"""

import whileai_hf as wai


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id."""


data = wai.simulate(
    wai.seeded_agent([get_order]), tools=[get_order], system_prompt="Help customers with orders.",
    simulator=False, mode="rl", repeats=4, repeat_policy="fixed", budget=96, progress=False,
)  # fmt: skip
graded = data.grade(judge=lambda row: {"reward": int(not row["seeded"])}, progress=False)

print(wai.group_signal(graded))  # how many tasks carry a gradient at all

rl = graded.select(mode="rl")
print(rl.report)
print(
    "for online sampling:", rl.report.tasks.select_columns(["task_id", "attempts", "pass_rate"])[0]
)

best = graded.select(mode="sft", top=1)  # rejection sampling
chance = graded.select(mode="sft", top=1, pick="random", seed=1)  # its control
print(f"sft: {len(best)} rows; the control has as many: {len(chance)}")

pairs = wai.build_preference_pairs(graded, max_pairs=2)
print(pairs.report)
print(wai.build_unpaired(graded).report)

print(wai.curriculum(graded).report)
again = wai.next_round(rl.report.tasks, graded)
print(f"next round: {len(again)} of {len(rl.report.tasks)} tasks")
