"""The v0 door: `load_environment` of verifiers 0.3.1 gives the reward of the others, in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest
from environment_scripts import POLICIES, endpoint

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPT = """
import asyncio, json, sys
import desk_case
import verifiers as vf
from verifiers.legacy.clients import OpenAIChatCompletionsClient
from openai import AsyncOpenAI
env = desk_case.load_environment(split="holdout", max_turns=6)
client = OpenAIChatCompletionsClient(AsyncOpenAI(base_url=sys.argv[1], api_key="none"))
rows = env.get_eval_dataset()
out = {}
async def main():
    for policy in json.loads(sys.argv[2]):
        state = await env.rollout(dict(rows[int(sys.argv[3])]), client=client, model=policy, sampling_args={})
        await env.rubric.score_rollout(state)
        out[policy] = [state["reward"], state["metrics"]]
asyncio.run(main())
print("RESULT " + json.dumps(out))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("verifiers.legacy") is not None,
    reason="verifiers below 0.4 is installed",
)
def test_a_newer_verifiers_says_what_to_do(module):
    with pytest.raises(wai.MissingExtra, match="vf-eval"):
        module.load_environment()


#: What verifiers 0.3.1 brings and this installation has already: two copies of a compiled library clash.
SHARED = (
    "datasets", "dill", "fsspec", "hf_xet", "huggingface_hub", "multiprocess", "numpy", "pandas", "pyarrow", "pydantic",
    "tokenizers", "transformers",
)  # fmt: skip


def installed(folder):
    """Install verifiers 0.3.1 into a folder of its own, beside the 0.4 that the other tests use."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--target",
        str(folder),
        "verifiers==0.3.1",
        "datasets>=5,<6",
    ]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("verifiers 0.3.1 cannot be installed here")
    for path in folder.iterdir():
        if path.name.startswith(SHARED):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return str(folder)


@pytest.mark.slow
def test_each_policy_earns_what_the_other_doors_say(env, exported, tmp_path):
    old = os.environ.get("WHILEAI_VERIFIERS_031") or installed(tmp_path / "v031")
    paths = [old, str(exported.path), str(env.folder.parents[0]), os.environ.get("PYTHONPATH", "")]
    at = [t.privileged["expected"] for t in env.tasks("holdout")].index("done")
    task = env.tasks("holdout")[at]
    with endpoint(env, POLICIES) as server:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, server.url, json.dumps(list(POLICIES)), str(at)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert "RESULT" in done.stdout, done.stderr[-3000:]
    found = json.loads(done.stdout.split("RESULT ")[1])
    for name, policy in POLICIES.items():
        judged = env.judge(env.play(task, policy(task)))
        assert found[name][0] == (judged["reward"] or 0.0), name
        assert found[name][1]["truncated"] == judged["truncated"], name
    for request in server.requests:
        assert [t["function"]["parameters"] for t in request["tools"]] == [
            t["function"]["parameters"] for t in task.tools
        ]
