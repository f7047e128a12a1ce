# The first of these that is Python 3.11 or newer; or say make PYTHON=...
PYTHON ?= $(shell for p in python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test lint format docs clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */\1	/' | expand -t 12

install: $(STAMP)  ## set up .venv with the pinned versions

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || test -n "$(PYTHON)" || { echo "Python 3.11 or newer not found."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV), which takes a minute or two ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@echo "Compiling its kernels, once ..."
	@$(BIN)/diconet demo --json --out $(VENV)/demo >/dev/null
	@touch $@

demo: install  ## see what it does
	$(BIN)/diconet demo

test: lint  ## everything that must pass: style, types, tests
	$(BIN)/pytest -n 2 --dist loadfile

lint: install  ## style, types, and imports that run one way
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install  ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.docs: $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs  ## build the site in build/site, and run its notebooks; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

clean:  ## remove caches and builds; .venv stays
	rm -rf build dist .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
