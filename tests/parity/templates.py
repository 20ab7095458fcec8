"""Which chat templates of TRL are labelled exactly, unrolled, or refused; writes tests/data/templates.json.

Run: python tests/parity/templates.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import tiny
import trl

import whileai_hf as wai

OUT = Path(__file__).parents[1] / "data" / "templates.json"


def verdict(template):
    messages = tiny.conversation(0)
    mask = [int(m["role"] == "assistant") for m in messages]
    rows = wai.Rollouts.from_records(
        [{"messages": messages, "tools": [tiny.WEATHER], "loss_mask": mask}]
    )
    made = wai.to_sft(rows, tiny.tokenizer(), chat_template=template)
    if not len(made):
        return "refused: " + "; ".join(made.report.refused)[:120]
    how = "unrolled" if "unrolled" in made.report.methods else "exact"
    return f"{how}, drops {', '.join(made.report.lost)}" if made.report.lost else how


def main():
    folder = Path(trl.__file__).parent / "chat_templates"
    table = {p.stem: verdict(p.read_text(encoding="utf-8")) for p in sorted(folder.glob("*.jinja"))}
    OUT.write_text(json.dumps(table, indent=1) + "\n")
    for name, what in table.items():
        print(f"{name:32} {what}")


if __name__ == "__main__":
    main()
