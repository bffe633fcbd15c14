# Two commands matter to a newcomer: `make demo` and `make test`. Both set up what they need first.
# Needed on the machine: git, make, Python 3.11+ and a JDK 17+. Nothing else; every tool lives in .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
JAR    := src/tidegate/spark/tidegate-connector.jar
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench lock docs clean

help:  ## Show what can be done
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(READY)  ## Create .venv with everything locked in requirements/dev.txt

$(READY): requirements/dev.txt pyproject.toml tools/prerequisites.sh
	@bash tools/prerequisites.sh $(PYTHON)
	@echo "==> Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "==> Installing the locked dependencies (a few minutes the first time: Spark is large)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@echo "==> Installing Tidegate itself"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

# Folders are listed too: theirs is the time at which a source was last removed.
$(JAR): $(shell find connector) hatch_build.py src/tidegate/spark/jars.py | $(READY)
	@echo "==> Compiling the connector"
	@$(BIN)/python hatch_build.py

demo: $(READY) $(JAR)  ## Run a pipeline on Spark, let two writers race, show what the catalog knows
	@$(BIN)/tidegate demo

# Files go to the workers in the order of their names: those with Spark take longest, and come before most others.
# Tests start a few hundred servers and commands: where Python is told to keep no bytecode, each would compile all of src.
test: $(READY) $(JAR)  ## Run all tests (PostgreSQL and Spark included: real ones are started for them)
	@$(BIN)/python -m compileall -q src
	@echo "==> Running the tests, $(WORKERS) files at a time"
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

check: $(READY)  ## Lint, types, import contracts, reference pages
	@echo "==> ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "==> pyright (strict)"
	@$(BIN)/pyright --warnings
	@echo "==> import contracts"
	@$(BIN)/lint-imports
	@echo "==> reference pages are up to date"
	@$(BIN)/python tools/reference.py --check

bench: $(READY)  ## Measure every case beside the limits of this machine (BENCH=--quick for a rough look)
	@$(BIN)/python -m benchmarks $(BENCH)

docs: $(READY)  ## Write the generated reference pages anew
	@$(BIN)/python tools/reference.py

lock: $(READY)  ## Compile requirements/*.txt anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
		--extra server pyproject.toml -o requirements/runtime.txt
	@$(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
		--all-extras --group dev pyproject.toml -o requirements/dev.txt

clean:  ## Remove .venv, caches and the compiled connector
	rm -rf $(VENV) $(JAR) .pytest_cache .ruff_cache .hypothesis .import_linter_cache demo-home
