"""Run candidate programs against hidden tests: the process with tests runs no candidate code."""
