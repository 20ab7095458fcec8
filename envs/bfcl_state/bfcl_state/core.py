"""Tasks, world, tool schemas and reward, read from the files beside this one."""

from pathlib import Path

import whileai_hf as wai

ENVIRONMENT = wai.load_environment(Path(__file__).parent)
