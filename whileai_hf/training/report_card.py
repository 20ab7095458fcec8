"""The card of a run: what was trained, and the paired difference on held-out tasks."""

from __future__ import annotations

import json

from whileai_hf.extras import require
from whileai_hf.measure.delta import compare
from whileai_hf.measure.pass_at import Estimate, pass_at
from whileai_hf.rollouts import Rollouts
from whileai_hf.training.run_folder import RunFolder

#: Arguments of a trainer that decide what a run did.
_ARGUMENTS = (
    "learning_rate", "max_steps", "num_train_epochs", "per_device_train_batch_size",
    "gradient_accumulation_steps", "num_generations", "beta", "temperature", "max_completion_length",
    "loss_type", "seed",
)  # fmt: skip


def write_card(folder: RunFolder, name: str) -> str:
    """Write `README.md` into a run folder, from nothing but the files that are there.

    Args:
        folder: The run.
        name: Title of the card.

    Returns:
        The text of the card.
    """
    about = json.loads((folder.path / "run.json").read_text(encoding="utf-8"))
    lines = ["---", "tags: [trl, whileai-hf]", "---", "", f"# {name}", ""]
    lines += _measured(folder)
    lines += ["## How", "", "| argument | value |", "|---|---|"]
    given = about["config"]
    lines += [f"| `{a}` | {given[a]} |" for a in _ARGUMENTS if given.get(a) is not None]
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items())
    lines += ["", f"Made with {versions}, Python {about['python']}.", ""]
    text = "\n".join(lines)
    (folder.path / "README.md").write_text(text, encoding="utf-8")
    return text


def _measured(folder: RunFolder) -> list[str]:
    found = folder.evaluations()
    lines = ["## Held-out tasks", ""]
    if not found:
        return [*lines, "Not measured: the run had no held-out tasks.", ""]
    steps = sorted(found)
    lines += ["| step | measured |", "|---|---|"]
    lines += [f"| {s} | {str(pass_at(found[s])).splitlines()[0]} |" for s in steps]
    if len(steps) > 1:
        lines += ["", "```text", str(compare(found[steps[0]], found[steps[-1]])), "```"]
    if plot(folder, found):
        lines += ["", "![pass@1 on held-out tasks](holdout.png)"]
    return [*lines, ""]


def plot(folder: RunFolder, found: dict[int, Rollouts]) -> bool:
    """Draw pass@1 of the held-out tasks over the run, with its interval; False without matplotlib."""
    try:
        figures = require("matplotlib.figure", "report")
    except ImportError:
        return False
    figure = figures.Figure(figsize=(6, 3), layout="constrained")
    axis = figure.subplots()
    measured = {step: _shown(found[step]) for step in sorted(found)}
    known = {step: e for step, e in measured.items() if e is not None}
    steps = list(known)
    axis.plot(steps, [e.value for e in known.values()], marker="o")
    low = [e.interval.low for e in known.values()]
    high = [e.interval.high for e in known.values()]
    axis.fill_between(steps, low, high, alpha=0.2)
    axis.set(xlabel="step", ylabel="pass@1", ylim=(0, 1), title="Held-out tasks, 95 % interval")
    figure.savefig(folder.path / "holdout.png", dpi=120)
    return True


def _shown(rows: Rollouts) -> Estimate | None:
    measured = pass_at(rows)
    return measured.pass_at_1 or measured.mean_reward
