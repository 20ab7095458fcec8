"""Simulate, and grade by two programs at once: where the world ends, and what the reply must name.

Learn: put verifiers and functions of your own together; the worst part decides.
Needs: the base install.
Takes: two seconds.
Prints: pass@1 by either part alone and by both.
"""

import warnings

import whileai_hf as wai

warnings.simplefilter("ignore")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id."""


def world(row):
    """Reward an end of the world that is the expected one."""
    after = wai.World.from_row(row)
    for call in wai.tool_calls(row):
        after.call(call.name, call.arguments)
    return {
        "reward": int(after.achieved() == (row["privileged"]["expected"] == "done")),
        "reason": "world",
    }


data = wai.simulate(
    wai.seeded_agent([get_order]), tools=[get_order], system_prompt="Help customers with orders.",
    budget=120, progress=False,
)  # fmt: skip
names_it = wai.Regex(pattern=r"\b[A-Z]{2,4}-\d+\b|\?")
for name, judge in (("world", world), ("text", names_it), ("both", wai.All(world, names_it))):
    print(f"{name:6}", str(wai.pass_at(data.grade(judge=judge, progress=False))).splitlines()[0])
