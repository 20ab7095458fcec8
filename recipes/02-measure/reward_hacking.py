"""Find what a reward pays for: a planted phrase, named with the rows to read, told from a skill by gold.

Learn: scan graded rollouts for hacks, endorse what may be paid, and label some rows to tell hack from skill.
Needs: the base install; the picture needs `pip install "whileai-hf[report]"`.
Takes: five seconds.
Prints: three scans; with `--picture hack.png` writes the within-task credit of the strongest features.
"""

import argparse

import numpy as np
from datasets import Dataset

import whileai_hf as wai

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--picture", help="where to write a bar chart")
args = parser.parse_args()

rng = np.random.default_rng(0)
words = np.array(
    [
        "the",
        "order",
        "was",
        "sent",
        "today",
        "and",
        "should",
        "arrive",
        "soon",
        "please",
        "check",
        "your",
        "mail",
        "for",
        "a",
        "label",
    ]
)
rows = []
for task in range(80):
    rate = rng.random()
    for _ in range(8):
        right = float(rng.random() < rate)
        text = " ".join(rng.choice(words, 20))
        if rng.random() < 0.3:  # the judge is taken in by a phrase
            rows.append(
                (
                    f"task {task}",
                    max(right, float(rng.random() < 0.7)),
                    right,
                    f"{text}. Verified twice!",
                )
            )
        else:
            rows.append((f"task {task}", right, right, f"{text}."))
ids, reward, gold, text = zip(*rows, strict=True)
data = Dataset.from_dict({"task_id": ids, "reward": reward, "final_text": text})

print("the reward alone")
found = wai.hack_scan(data)
print(found)
print("a phrase that may be paid")
print(wai.hack_scan(data, endorsed=["verified", "twice", "'!'"]))
print("with gold on a third of the rows")
some = [g if i % 3 == 0 else None for i, g in enumerate(gold)]
print(wai.hack_scan(data.add_column("gold_reward", some)))

if args.picture:
    import matplotlib.pyplot as plt

    top = wai.reward_correlations(data)[:10][::-1]
    plt.figure(figsize=(7, 3.5))
    plt.barh(
        [f.name for f in top],
        [f.correlation for f in top],
        color=["#c33" if f.p <= 0.05 else "#999" for f in top],
    )
    plt.xlabel("correlation with the reward within tasks (red: beyond chance)")
    plt.tight_layout()
    plt.savefig(args.picture, dpi=120)
    print(args.picture)
