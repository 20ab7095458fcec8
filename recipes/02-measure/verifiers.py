"""Rewards that are programs: what an answer commits to, against a reference that stays hidden.

Learn: pick a verifier, switch its policy, and see what it says of answers that others get wrong.
Needs: the base install.
Takes: five seconds.
Prints: the reward and the reason of each answer.
"""

from datasets import Dataset

import whileai_hf as wai

CASES = [
    (wai.Numeric(), "The answer is 5. Wait, I made a mistake: it is 9.", "9"),
    (wai.Numeric(), "It is 6 or 8.", "8"),
    (wai.Numeric(), "35", "35%"),
    (wai.Numeric(percent="lenient"), "35", "35%"),
    (wai.MathEqual(), r"\boxed{41}... wait, I dropped a carry: \boxed{42}", "42"),
    (wai.MathEqual(), r"The roots are \boxed{3} and \boxed{5}.", "5, 3"),
    (wai.MathEqual(), r"$x<1$ or $x>3$", r"(-\infty,1)\cup(3,\infty)"),
    (wai.MathEqual(), r"$\frac{1}{3^{91}}$", r"$\frac{1}{3^{90}}$"),
    (wai.MultipleChoice(choices=("red", "green", "blue")), "Not (A); the answer is green.", "B"),
    (wai.Regex(pattern=r"\[\[(\d)\]\]"), "First [[6]], on a second look [[4]].", "4"),
    (wai.JSONField(path="order.id"), 'Draft {"order": {"id": 1}}, final {"order": {"id": 2}}', 2),
    (wai.JSONSchema(schema={"type": "object", "required": ["id"]}), '{"id": 7}', None),
    (wai.JSONValid(), '{"status": "ok", "status": "error"}', None),
]

for verifier, answer, reference in CASES:
    row = {"final_text": answer, "privileged": {"reference": reference}}
    verdict = verifier(row)
    print(f"{verdict['reward']}  {verifier.name:18} {answer[:44]:46} {verdict['reason']}")

# Each one is a judge of `grade` and a reward function of TRL.
rows = Dataset.from_dict({"final_text": ["It is 42.", "It is 47."], "solution": ["42", "48"]})
print(wai.grade(rows, wai.MathEqual(field="solution"), progress=False)["reward"][:])
print(wai.MathEqual().reward_func()(prompts=["6*7?"], completions=["It is 42."], answer=["42"]))
