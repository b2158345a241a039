# The two commands: `make demo` sorts a sample inbox, `make test` installs what the tests need and passes them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -q

# Tests start many processes: their byte code is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo install install-test test unit lint types imports fmt lock services bench fuzz torture train clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: install ## Sort a sample inbox on this machine: no key, no network
	@$(BIN)/triage demo

install: $(VENV)/.run ## Make the environment from the lock file

$(VENV)/.run: requirements/run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("triage needs Python 3.11 or later, this is " + sys.version.split()[0] + "; try: make demo PYTHON=python3.12")'
	@echo "Installing triage into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements/run.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

install-test: $(VENV)/.test services ## Also what the tests need

$(VENV)/.test: $(VENV)/.run requirements/test.lock
	@$(PIP) install --require-hashes -r requirements/test.lock
	@touch $@

services: ## Dovecot, PostgreSQL and Chromium for the tests, where apt can bring them
	@sh scripts/install-services.sh

test: install-test lint types imports ## Everything: lint, types, layers, tests
	@$(BIN)/python -m pytest

unit: $(VENV)/.test ## Only the fast tests
	@$(BIN)/python -m pytest tests/unit

lint: $(VENV)/.test ## ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.test ## mypy, strict
	@$(BIN)/mypy

imports: $(VENV)/.test ## The layers of the package
	@$(BIN)/lint-imports

fmt: $(VENV)/.test ## Format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: ## Renew the lock files (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra demo --extra postgres --extra mcp --group build pyproject.toml -o requirements/run.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra demo --extra postgres --extra mcp --group build --group test -c requirements/run.lock pyproject.toml -o requirements/test.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra demo --extra postgres --extra mcp --group build --group test --group train -c requirements/test.lock pyproject.toml -o requirements/train.lock

bench: $(VENV)/.test services ## The figures: runs, decisions, queue, preparation (needs ../shared)
	@for each in run decide claims preparation embedded backfill schedule ledger_scale web mail_tool; do \
	  echo "== bench/$$each.py"; $(BIN)/python bench/$$each.py || exit 1; done

fuzz: $(VENV)/.test ## 200,000 mutated messages through preparation
	@$(BIN)/python scripts/fuzz_prepare.py --count 200000

torture: $(VENV)/.test services ## The crash matrix and the many-servers test in their long form
	@TRIAGE_TORTURE=full $(BIN)/python -m pytest tests/torture -q -s --timeout 3600

train: $(VENV)/.train ## Train the embedded classifier's weights and write its model card
	@$(BIN)/python scripts/train_embedded.py --evaluate

$(VENV)/.train: $(VENV)/.test requirements/train.lock
	@$(PIP) install --require-hashes -r requirements/train.lock
	@touch $@

clean: ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
