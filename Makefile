# Everything runs in .venv, made from pyproject.toml and constraints.txt. The stamp names the
# interpreter and the two files' content, so that a stale or half-made .venv is always rebuilt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(shell { $(PYTHON) -c 'import sys; print(sys.version, sys.prefix)'; pwd; cat pyproject.toml constraints.txt; } | cksum | tr ' ' '-')
READY := $(VENV)/.ready-$(STAMP)
# The oldest versions that pyproject.toml allows, beside it.
OLDEST := .venv-oldest
OLDEST_STAMP := $(shell { $(PYTHON) -c 'import sys; print(sys.version, sys.prefix)'; pwd; cat pyproject.toml constraints-oldest.txt; } | cksum | tr ' ' '-')
# What a dependency's age can break: numbers, tables, and scikit-learn's and numba's own ways.
OLDEST_TESTS := tests/privacy tests/noise tests/records tests/erm tests/estimators tests/local \
	tests/preprocessing tests/saving tests/test_sklearn_checks.py tests/test_table_model.py
# One thread a process: pytest itself runs on every core. Bytecode is kept even where the
# environment says not to: workers and the programs that tests start would each compile all.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := $(THREADS) $(BIN)/python -m pytest -n 2 --durations=10
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: test test-slow test-all test-oldest golden wheel-test fuzz mutants demo docs lint format \
	bench speed-gate trusted-code registry renamed commands reproduce clean \
	venv

test: venv
	$(PYTEST) -m 'not slow'

test-slow: venv
	$(PYTEST) -m slow tests

test-all: venv
	$(PYTEST)

test-oldest:
	@if [ ! -e $(OLDEST)/.ready-$(OLDEST_STAMP) ]; then \
	  set -e; rm -rf $(OLDEST); $(PYTHON) -m venv $(OLDEST); \
	  $(OLDEST)/bin/python $(PIP_INSTALL) --constraint constraints-oldest.txt --editable '.[dev]'; \
	  touch $(OLDEST)/.ready-$(OLDEST_STAMP); \
	fi
	$(THREADS) $(OLDEST)/bin/python -m pytest -n 2 -m 'not slow' $(OLDEST_TESTS)

# Stores plans and seeded fits as they are now, and says which changed and by how much; the decision
# that changes them lists these. CHECK=1 stores nothing.
golden: venv
	$(THREADS) $(BIN)/python -m tests.golden.regenerate $(if $(CHECK),--check)

# What users install: the wheel, alone in an empty environment, runs the demo from elsewhere.
wheel-test: venv
	@rm -rf dist
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	  $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	TACIT_WHEEL="$$(ls dist/*.whl)" $(BIN)/python -m pytest -q tests/test_wheel.py
	@set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; here=$$(pwd); \
	$(PYTHON) -m venv "$$folder/venv"; \
	"$$folder/venv/bin/python" $(PIP_INSTALL) --constraint constraints.txt \
	  "tacit[demo] @ file://$$here/$$(ls dist/*.whl)"; \
	cd "$$folder"; env -u PYTHONPATH venv/bin/tacit demo; test -s tacit-report.html

# Belongs to a release: what the tests do with some random cases, with many; and new noise for all.
fuzz: venv
	TACIT_FUZZ_CASES=200000 $(THREADS) $(BIN)/python -m pytest -n 2 tests/testing/test_readers.py
	TACIT_FUZZ_CASES=10000 $(THREADS) $(BIN)/python -m pytest -n 2 tests/cli/test_fuzz.py \
	  tests/saving/test_fuzz.py
	TACIT_TEST_SEED=random $(PYTEST)

# Belongs to a change of privacy code: small changes of it, which tests must notice; ONLY="names"
# for a module or a function of them. What survives must be in tests/mutants/accepted.toml.
mutants: venv
	PYTHONPATH=tools $(THREADS) $(BIN)/python -m mutants $(ONLY)

demo: venv
	$(BIN)/tacit demo

docs: venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

# docs/trusted_code.md: what a checker must read, and how long it is; docs/architecture.md: packages;
# docs/pate.md: the table of aggregators.
trusted-code: venv
	$(BIN)/python tools/trusted_code.py
	$(BIN)/python tools/architecture.py
	$(BIN)/python tools/aggregators.py

# What follows from the registry of mechanisms: names for type checkers, tables, lists of pages.
registry: venv
	$(BIN)/python tools/registry_pages.py

# docs/renamed.md: public names and modules of 0.1, and what they are called now.
renamed: venv
	$(BIN)/python tools/renamed.py

# docs/commands.md: every command with its options, from the commands themselves.
commands: venv
	$(BIN)/python tools/commands.py

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/boundaries.py
	$(BIN)/python tools/words.py

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

# Import, plans, fits and training beside the commit in benchmarks/speed_baseline.txt: none may be
# slower by 15 %. Skipped in a clone without that commit.
speed-gate: venv
	$(BIN)/python benchmarks/speed_gate.py

# Every figure of the source documents, to docs/sources; QUICK=1: small ones, to .bench, which must
# come out as they should; FIGURES="moments rank": these alone.
reproduce: venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	PYTHONPATH=benchmarks $(THREADS) $(BIN)/python -m reproduce $(if $(QUICK),--quick) $(FIGURES)

# Not a file target: whether .venv is usable is asked of .venv itself.
venv:
	@if [ ! -e $(READY) ] || ! $(BIN)/python -c 'import tacit, pytest' 2>/dev/null; then \
	  set -e; rm -rf $(VENV); $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python $(PIP_INSTALL) --constraint constraints.txt --editable '.[dev]'; \
	  touch $(READY); \
	fi

clean:
	rm -rf $(VENV) $(OLDEST) site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist \
	  .mutants
