"""What the tests of the trainer scripts share: a tiny model in a folder, and how a script is run."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import tiny
from parity import templates

import whileai_hf as wai

TRAINERS = Path(__file__).parents[2] / "trainers"
TWO_RANKS = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
LORA = ("--use_peft", "True", "--lora_target_modules", "q_proj", "v_proj")
ON_CPU = (
    "--use_cpu", "True", "--bf16", "False", "--gradient_checkpointing", "False", "--report_to", "none", "--dtype", "float32",
    "--gradient_accumulation_steps", "1", "--warmup_steps", "0", "--holdout", "0.25", "--logging_steps", "1", "--output_dir", "out",
)  # fmt: skip


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id.

    Args:
        order_id: The id.
    """
    return {}


def save_model(folder, template="qwen3_instruct_2507"):
    """Write a tiny model and a tokenizer whose template TRL knows."""
    path = next(p for p in templates.TEMPLATES if p.stem == template)
    tok = tiny.tokenizer(path.read_text(encoding="utf-8"))
    tiny.model(tok).save_pretrained(folder / "model")
    tok.save_pretrained(folder / "model")


def rollouts(rate=0.5, budget=40):
    """Graded rollouts of a simulated agent that acts on the world."""
    data = wai.simulate(
        wai.seeded_agent([get_order], rate=rate), tools=[get_order], system_prompt="Help.", mode="rl", repeats=2, budget=budget, progress=False,
    )  # fmt: skip
    return data.grade(wai.GoalReached(), progress=False)


def command(name, *more, launcher=(sys.executable,)):
    script = TRAINERS / f"{name}.py"
    config = str(script.with_suffix(".yaml"))
    return [
        *launcher,
        str(script),
        "--config",
        config,
        "--model_name_or_path",
        "model",
        *ON_CPU,
        *more,
    ]


def environment(folder):
    return {
        **os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": f"{folder}:{TRAINERS.parent}", "OMP_NUM_THREADS": "1",
        "HF_DATASETS_CACHE": str(folder / "cache"),
    }  # fmt: skip


def run(folder, name, *more, launcher=(sys.executable,)):
    """Run a script to its end, and return what it said."""
    done = subprocess.run(
        command(name, *more, launcher=launcher),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder),
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def run_here(folder, monkeypatch, capsys, name, *more):
    """Run a script in this process, where the libraries are loaded, and return what it said."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", command(name, *more)[1:])
    runpy.run_path(str(TRAINERS / f"{name}.py"), run_name="__main__")
    return "".join(capsys.readouterr())


def kill_at(folder, name, path, *more):
    """Run a script and kill it, with what it started, as soon as a path exists."""
    process = subprocess.Popen(
        command(name, *more),
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not (folder / path).exists():
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
