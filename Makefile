# Everything runs in a private environment in .venv, built from nothing but Python 3.11 or newer.
#
#   make demo    see an interrupt happen (no key, no network)
#   make test    all tests        make lint    style       make types   mypy and import contracts
#   make format  format the code  make bench   benchmarks  make docs    generated parts of docs/

PYTHON ?= python3
TEST_JOBS ?= 2
PYTEST_ARGS ?=
BENCH ?= $(wildcard benchmarks/[a-z]*.py)

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: demo test lint types format bench docs venv clean

venv: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) .ci/make_venv.py $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/ttsr-proxy demo

test: $(READY)
	$(BIN)/python -m pytest -n $(TEST_JOBS) $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	@for script in $(BENCH); do $(BIN)/python $$script || exit 1; done

docs: $(READY)
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
