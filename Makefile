# Tasks for people; .ci/run calls the same ones. Needs Python 3.11+ and uv (`pip install uv`).
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv >/dev/null 2>&1 && echo uv || echo python3 -m uv)
INSTALLED := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n 2

.DEFAULT_GOAL := help
.PHONY: help setup demo format check test test-all docs bench lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 12

setup: $(INSTALLED) ## make .venv with the locked versions and Dagsail itself

# `uv run` shares .venv and resolves versions for itself (uv.lock); when it did, go back to ours.
$(INSTALLED): requirements.lock pyproject.toml $(wildcard uv.lock)
	@test -x $(BIN)/python || $(UV) venv --quiet $(VENV)
	VIRTUAL_ENV=$(VENV) $(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	VIRTUAL_ENV=$(VENV) $(UV) pip install --quiet --no-deps --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

demo: setup ## compare the default policies on built-in workloads and write a report
	$(BIN)/dagsail demo

format: setup ## format the code and fix what ruff can fix
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

check: setup ## formatting, lint, types, architecture
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test: setup ## the quick tests with the coverage gate
	$(PYTEST) -m "not slow" --cov --cov-report=term

test-all: test ## the quick tests, then the slow ones
	$(PYTEST) -m slow

docs: setup ## the documentation in docs/_build/html; warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

# learned.py, pareto.py and tpch.py simulate for hours: run them by themselves.
bench: setup ## the benchmarks behind the tables in docs/benchmarks.md
	@set -e; for script in $(filter-out %/learned.py %/pareto.py %/tpch.py,$(wildcard benchmarks/[a-z]*.py)); do echo "== $$script"; $(BIN)/python $$script; done

lock: ## resolve requirements.lock anew after a change of dependencies in pyproject.toml
	$(UV) pip compile pyproject.toml --quiet --universal --generate-hashes --no-emit-index-url \
	  --all-extras --group dev --custom-compile-command "make lock" --output-file requirements.lock

clean: ## remove what the other targets made
	rm -rf $(VENV) docs/_build dist .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
