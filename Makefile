# Everything runs in .venv, made from pyproject.toml and constraints.txt. The stamp names the
# interpreter and the two files' content, so that a stale or half-made .venv is always rebuilt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(shell { $(PYTHON) -c 'import sys; print(sys.version, sys.prefix)'; pwd; cat pyproject.toml constraints.txt; } | cksum | tr ' ' '-')
READY := $(VENV)/.ready-$(STAMP)
# One thread a process: pytest itself runs on every core.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: test fuzz demo docs lint format bench clean venv

test: venv
	$(THREADS) $(BIN)/python -m pytest -n 2 --durations=10

# Belongs to a release: what the tests do with some random cases, with many.
fuzz: venv
	TACIT_FUZZ_CASES=200000 $(THREADS) $(BIN)/python -m pytest -n 2 tests/testing/test_readers.py
	TACIT_FUZZ_CASES=10000 $(THREADS) $(BIN)/python -m pytest -n 2 tests/cli/test_fuzz.py \
	  tests/saving/test_fuzz.py

demo: venv
	$(BIN)/tacit demo

docs: venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

# Not a file target: whether .venv is usable is asked of .venv itself.
venv:
	@if [ ! -e $(READY) ] || ! $(BIN)/python -c 'import tacit, pytest' 2>/dev/null; then \
	  set -e; rm -rf $(VENV); $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[dev]'; \
	  touch $(READY); \
	fi

clean:
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist
