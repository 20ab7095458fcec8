"""Believe a judge only where labels show it, and find what a policy would find first.

Learn: hold a judge against labels, try exploits on it, and see what an agent that does nothing would earn.
Needs: nothing; the seeded agent's labelled faults stand in for people's labels, a length judge for a weak model.
Takes: about ten seconds.
Prints: the verdict on two judges with intervals over tasks, and the exploits of the weak one.
"""

import warnings

import whileai_hf as wai

warnings.simplefilter("ignore")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id."""


@wai.tool
def cancel_order(order_id: str) -> dict:
    """Cancel an order."""


TOOLS = [get_order, cancel_order]
faults = ("claimed_action", "ungrounded_argument", "wrong_tool", "repeated_write")
agent = wai.seeded_agent(TOOLS, rate=0.5, faults=faults)
data = wai.simulate(
    agent, tools=TOOLS, system_prompt="Help with orders.", budget=150, progress=False
)

labels = {row["rollout_id"]: int(not row["seeded"]) for row in data}
data = wai.attach_labels(data, labels)  # people's labels take this place


def long_is_good(row):
    """A judge with a taste instead of a rubric."""
    return float(len(row["final_text"]) > 60)


for judge in (wai.task_checklist, long_is_good):
    print(wai.judge_trust(data.grade(judge, progress=False), judge))
print(wai.judge_probes(data, long_is_good, probes=("filler", "refusal", "sycophancy")))
print(wai.cheat_probes(data, wai.task_checklist))
