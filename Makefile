# Everything runs in a private environment in .venv, built from nothing but Python 3.11 or newer.
#
#   make demo    see an interrupt happen (no key, no network)
#   make test    all tests        make lint    style       make types   mypy and import contracts
#   make format  format the code  make bench   benchmarks  make docs    generated parts of docs/
#   make screenshots   the dashboard's pictures in docs/
#   make fuzz    coverage-guided fuzzing, FUZZ_SECONDS for each target (FUZZ=sse for one)
#   make soak    thousands of requests with faults: what the proxy holds before and after (some minutes)
#   make audit   known vulnerabilities of what the container installs
#   make lock    choose the container's packages anew, with their hashes

PYTHON ?= python3
TEST_JOBS ?= 2
PYTEST_ARGS ?=
BENCH ?= $(filter-out benchmarks/soak.py,$(wildcard benchmarks/[a-z]*.py))

FUZZ ?= sse json_arguments tool_calls prose conditions rule_files protocols configuration transcripts
FUZZ_SECONDS ?= 60

LOCK := pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.13

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: demo test lint types format bench docs screenshots fuzz soak audit lock venv clean

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

screenshots: $(READY)
	$(BIN)/python docs/screenshots.py

fuzz: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]'
	@for target in $(FUZZ); do \
		echo "== $$target, $(FUZZ_SECONDS) s"; \
		$(BIN)/python tests/fuzz/run.py $$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -max_len=2048 \
			-verbosity=0 -artifact_prefix=.fuzz- || exit 1; \
	done

soak: $(READY)
	$(BIN)/python benchmarks/soak.py

audit: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[audit]'
	@for list in container/*.txt; do $(BIN)/pip-audit --disable-pip --require-hashes -r $$list || exit 1; done

lock: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[audit]'
	$(BIN)/uv $(LOCK) --extra redis pyproject.toml -o container/requirements.txt
	$(BIN)/uv $(LOCK) container/build.in -o container/build.txt

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
