"""From nothing: wheels of the library and of an environment, a new virtual environment, `vf-eval` and three GRPO steps."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import whileai_hf as wai

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[2]

TRAIN = """
import sys
sys.path.append(sys.argv[1])
import tiny, whileai_hf as wai
from support_desk import ENVIRONMENT
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_template
tok = tiny.tokenizer()
tok.response_template = qwen3_template
trainer = GRPOTrainer(
    model=tiny.model(tok), processing_class=tok, train_dataset=ENVIRONMENT.dataset("train"),
    reward_funcs=[ENVIRONMENT.reward_func()], environment_factory=wai.trl_environment(ENVIRONMENT),
    args=GRPOConfig(output_dir="out", max_steps=3, per_device_train_batch_size=4, num_generations=4, max_completion_length=24,
                    use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none"),
)
ENVIRONMENT.show_tools(trainer)
print("STEPS", trainer.train().global_step, wai.__file__)
"""


def run(command, cwd):
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-3000:])
    return done.stdout


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A virtual environment with the wheels; third parties are those of the running one, read through a path file."""
    folder = tmp_path_factory.mktemp("fresh")
    run([sys.executable, "-m", "venv", "venv"], folder)
    python = folder / "venv" / "bin" / "python"
    site = Path(
        run(
            [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], folder
        ).strip()
    )
    shared = sysconfig.get_paths()["purelib"]
    for source in (ROOT, ROOT / "envs" / "support_desk"):
        run([python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", "wheels", str(source)], folder)
    run(
        [
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            *map(str, sorted((folder / "wheels").glob("*.whl"))),
        ],
        folder,
    )
    # Only after our own packages: what is installed here is found before what is shared.
    (site / "zz_shared.pth").write_text(shared + "\n")
    return folder, python


def test_the_wheel_evaluates_from_outside_the_repository(fresh):
    folder, python = fresh
    where = run(
        [
            python,
            "-c",
            "import support_desk, whileai_hf; print(support_desk.__file__, whileai_hf.__file__)",
        ],
        folder,
    )
    assert str(ROOT) not in where
    env = wai.load_environment(ROOT / "envs" / "support_desk")
    with env.reference_server() as server:
        run(
            [python, "-c", "from verifiers.v1.cli.eval.main import main; main()", "support-desk", "-m", "reference", "--client.base-url", server.url,
             "--env.taskset.split", "holdout", "-n", "2", "-r", "2", "--no-push", "--no-rich", "-o", "runs", "--run.name", "one"],
            folder,
        )  # fmt: skip
    rows = wai.rollouts_from_traces(folder / "runs" / "one", env=env)
    assert rows["reward"][:] == [1.0] * 4


def test_the_wheel_trains_three_steps(fresh):
    folder, python = fresh
    said = run([python, "-W", "ignore", "-c", TRAIN, str(ROOT / "tests")], folder)
    assert "STEPS 3" in said
    assert str(ROOT / "whileai_hf") not in said
