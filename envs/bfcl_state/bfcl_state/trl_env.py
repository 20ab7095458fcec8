"""The environment for GRPOTrainer, without verifiers.

trainer = GRPOTrainer(..., train_dataset=ENVIRONMENT.dataset("train"), environment_factory=environment_factory,
                      reward_funcs=[ENVIRONMENT.reward_func()])
ENVIRONMENT.show_tools(trainer)          # render the verbatim schemas
"""

import whileai_hf as wai
from bfcl_state.core import ENVIRONMENT

environment_factory = wai.trl_environment(ENVIRONMENT)
