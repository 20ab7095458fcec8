"""Asks of the template writer beside those of two peers, on the same tools: whileai and the users of tau2-bench.

Run: python tests/benchmarks/asks.py PEER_PYTHON [DOMAIN] [N]
PEER_PYTHON is a Python with whileai 0.131 installed. It prints one table; every measure is taken on the
same number of asks.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from toolsets import package, tau2, tau2_policy

import whileai_hf as wai
from whileai_hf.simulate.gap import stance_cues, stance_of
from whileai_hf.simulate.quality import HARD, distinct, drawn_asks, near_copies, similarity
from whileai_hf.world.tools import read_tools

PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import whileai.simulations as wai
tools, prompt, n = json.load(open(sys.argv[1])), open(sys.argv[2]).read(), int(sys.argv[3])
data = wai.simulate(wai.seeded_agent(tools), tools=tools, system_prompt=prompt, simulator=False, budget=n)
rows = [[r.get("prompt"), r.get("scenario_dimensions") or {}] for r in data.rows()]
json.dump(rows, open(sys.argv[4], "w"))
"""

#: Axes that both grids have.
AXES = ("tool", "stance", "world_state", "tool_condition", "history")


def peer_asks(python: str, tools: list, prompt: str, n: int) -> list[tuple[str, dict]]:
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "tools.json").write_text(json.dumps(tools))
        (at / "prompt.md").write_text(prompt)
        subprocess.run([python, "-c", PEER, str(at / "tools.json"), str(at / "prompt.md"), str(n), str(at / "out.json")],
                       check=True, capture_output=True)  # fmt: skip
        return [(ask, axes) for ask, axes in json.loads((at / "out.json").read_text())]


def tau2_asks(domain: str) -> list[tuple[str, dict]]:
    path = package("tau2") / "data" / "tau2" / "domains" / domain / "tasks.json"
    out = []
    for task in json.loads(path.read_text()):
        said = task["user_scenario"]["instructions"]
        if isinstance(said, dict):
            calls = [
                a
                for a in task["evaluation_criteria"].get("actions") or []
                if a.get("arguments") is not None
            ]
            text = " ".join(str(said[k]) for k in ("reason_for_call", "known_info") if said.get(k))
            out.append((text, {"calls": calls}))
    return out


def own_asks(tools: list, prompt: str, n: int) -> list[tuple[str, dict]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = wai.simulate(
            wai.seeded_agent(tools),
            tools=tools,
            system_prompt=prompt,
            budget=n,
            repeats=1,
            progress=False,
        )
    return [
        (r["ask"], {**r["situation"], "goal": (r["privileged"] or {}).get("goal")})
        for r in data.records()
    ]


def grounded(ask: str, axes: dict, tools: dict) -> bool | None:
    """Whether an ask says a value for each required argument of the tool that it is about.

    Where the values are known, they are looked for; else anything that could be one counts, which is
    kind to a writer that records none.
    """
    goal = axes.get("goal")
    if goal:
        steps = goal.get("after") or []
        values = [v for v in goal["arguments"].values() if not isinstance(v, (bool, dict, list))]
        by_search = any(
            "search" in s["tool"] or "find" in s["tool"] or "list" in s["tool"] for s in steps
        )
        return by_search or all(str(v) in ask for v in values)
    if axes.get("calls"):
        values = [v for call in axes["calls"][:1] for v in call["arguments"].values()]
        return all(str(v) in ask for v in values if not isinstance(v, (dict, list)))
    tool = tools.get(axes.get("tool"))
    if tool is None:
        return None
    required = tool.parameters.get("required") or []
    found = re.findall(r"#?\b[A-Z]{1,4}[-_]?\d{2,}\b|#?\b\d+[A-Z0-9.]*\b|\"[^\"]+\"|\S+@\S+", ask)
    return len(found) >= len(required)


def pairs(asks: list[tuple[str, dict]], known: dict[str, set]) -> float:
    """Share of the pairs of values of the common axes, of those that this writer offers at all, that were met."""
    met = {
        (a, x[a], b, x[b])
        for _, x in asks
        for a in AXES
        for b in AXES
        if a < b and x.get(a) and x.get(b)
    }
    return len(met) / sum(len(known[a]) * len(known[b]) for a in AXES for b in AXES if a < b)


def measure(asks: list[tuple[str, dict]], tools: dict, n: int) -> dict[str, Any]:
    texts = drawn_asks([a for a, _ in asks], n, 0)
    mean, nearest = similarity(texts)
    said = [g for a, x in asks if (g := grounded(a, x, tools)) is not None]
    cues = stance_cues()
    known = {a: {x[a] for _, x in asks if x.get(a)} for a in AXES}
    has_axes = all(known.values())
    stances = [x.get("stance") or stance_of(a, cues) for a, x in asks]
    return {
        "asks": len(texts), "distinct asks": len({a for a, _ in asks}) / len(asks),
        "distinct-1": distinct(texts)[0], "distinct-2": distinct(texts)[1], "distinct-3": distinct(texts)[2],
        "self-similarity": mean, "nearest": nearest, "near copies": float(np.mean(near_copies(texts))),
        "values stated": float(np.mean(said)) if said else None,
        "hard stances": sum(s in HARD for s in stances) / len(stances),
        "pairs met": pairs(asks, known) if has_axes else None,
    }  # fmt: skip


def table(python: str, domain: str = "retail", n: int = 400) -> dict[str, dict[str, Any]]:
    """Measure the three writers on one domain; every text measure on the size of the smallest."""
    read = read_tools(tau2(domain))
    tools, prompt = [t.schema for t in read], tau2_policy(domain)
    sets = {
        "whileai_hf": own_asks(tools, prompt, n), "whileai": peer_asks(python, tools, prompt, n), "tau2-bench": tau2_asks(domain),
    }  # fmt: skip
    size = min(map(len, sets.values()))
    return {name: measure(asks, {t.name: t for t in read}, size) for name, asks in sets.items()}


def shown(found: dict[str, dict[str, Any]]) -> str:
    rows = list(next(iter(found.values())))
    lines = [f"{'':18}" + "".join(f"{name:>12}" for name in found)]
    for row in rows:
        cells = (
            "n/a" if (v := m[row]) is None else f"{v:.2f}" if isinstance(v, float) else str(v)
            for m in found.values()
        )
        lines.append(f"{row:18}" + "".join(f"{c:>12}" for c in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    print(shown(table(sys.argv[1], *sys.argv[2:3], *(int(v) for v in sys.argv[3:4]))))
