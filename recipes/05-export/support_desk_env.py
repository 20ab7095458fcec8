"""Export a simulated support desk as an environment for `vf-eval` and GRPO.

Learn   simulate, grade, export: tasks in the difficulty band to train on, situations held out
Needs   nothing: no key, no model
Takes   ten seconds
Prints  what was written, and what policies that do not try earn
"""

import sys
from pathlib import Path

import whileai_hf as wai


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order.

    Args:
        order_id: Id of the order.
    """
    return {}


@wai.tool
def find_orders(customer_email: str) -> dict:
    """Find the orders of a customer.

    Args:
        customer_email: E-mail address of the customer.
    """
    return {}


@wai.tool
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order that was not shipped.

    Args:
        order_id: Id of the order.
        reason: Why the customer cancels.
    """
    return {}


@wai.tool
def refund_order(order_id: str, amount_cents: int) -> dict:
    """Refund an order.

    Args:
        order_id: Id of the order.
        amount_cents: Amount in cents.
    """
    return {}


TOOLS = [get_order, find_orders, cancel_order, refund_order]
PROMPT = (
    "You are the support desk of a shop. Look records up before you change them. "
    "Never act on an order of somebody else. Say what was done and what was not."
)


def main(path):
    agent = wai.seeded_agent(TOOLS, rate=0.5)
    data = wai.simulate(
        agent,
        tools=TOOLS,
        system_prompt=PROMPT,
        mode="rl",
        repeats=4,
        repeat_policy="fixed",
        budget=480,
        progress=False,
    )
    scored = data.grade(wai.task_checklist, progress=False)
    return wai.export_environment(
        scored, path, name="support_desk", overwrite=True,
        description="A support desk with orders, refunds and tools that fail on schedule.",
    )  # fmt: skip


if __name__ == "__main__":
    here = Path(__file__).parents[2] / "envs" / "support_desk"
    print(main(Path(sys.argv[1]) if len(sys.argv) > 1 else here))
