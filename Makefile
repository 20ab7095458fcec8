# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
CONSTRAINTS := tests/constraints-cpu.txt
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export HF_HUB_DISABLE_TELEMETRY = 1

.PHONY: quickstart test test-slow lint types layers docs check clean

quickstart: .venv/.base  ## install the base package and run the whole loop offline
	$(BIN)/python recipes/01-simulate/quickstart.py

test: .venv/.dev  ## install the test extras on the pinned CPU stack and run the suite
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

test-slow: .venv/.dev  ## the simulations and corpora that take minutes
	$(BIN)/python -m pytest -m slow $(ARGS)

lint: .venv/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: .venv/.dev
	$(BIN)/mypy

layers: .venv/.dev
	$(BIN)/lint-imports

docs: .venv/.dev  ## run the code blocks of the README
	$(BIN)/python -m pytest -q tests/contracts/test_readme.py

check: lint types layers docs

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.base: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	$(BIN)/pip install -q -c $(CONSTRAINTS) -e .
	touch $@

.venv/.dev: pyproject.toml $(CONSTRAINTS) tests/requirements-data.txt | .venv/bin/python
	$(BIN)/pip install -q -c $(CONSTRAINTS) torch -e ".[dev]"
	$(BIN)/pip install -q --no-deps -r tests/requirements-data.txt
	touch $@ .venv/.base
