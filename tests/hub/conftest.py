"""A Hub on this machine, and a Python process that talks to it as a user's would."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from hub.fake_hub import FakeHub


@pytest.fixture
def hub():
    with FakeHub() as running:
        yield running


@pytest.fixture
def user(hub, tmp_path):
    """Run code in a fresh process with its own cache, against the stand-in."""

    def run(*code, check=True):
        env = {
            **os.environ,
            "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "hf_test",
            "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_PROGRESS_BARS": "1", "PYTHONWARNINGS": "ignore",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(map(textwrap.dedent, code))], capture_output=True, text=True, env=env, cwd=tmp_path
        )
        assert not check or done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip() if check else done

    return run
