# make run: set up and run the default scenario live. make test: set up and pass the tests but the slow ones, in at most
# ten minutes on two cores. make test-all: all tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up

# make play: set up and build the lessons, a folder that any static server opens.
.PHONY: setup run test test-all lint docs play bench mutants clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt scripts/ensure_venv.sh scripts/ensure_java.sh
	@PYTHON=$(PYTHON) VENV=$(VENV) sh scripts/ensure_venv.sh
	$(BIN)/python -m pip install --quiet -e '.[dev]' -c constraints.txt
	@sh scripts/ensure_java.sh
	@touch $(STAMP)

run: setup
	$(BIN)/murmur run

test: setup
	@sh scripts/run_tests.sh $(BIN)/python "not slow"

test-all: setup
	@sh scripts/run_tests.sh $(BIN)/python

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: setup
	@sh scripts/fetch_mermaid.sh docs/_build/mermaid
	$(BIN)/python -m pip install --quiet -e '.[docs]' -c constraints.txt
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo "open docs/_build/html/index.html"

play: setup
	@sh scripts/fetch_pyodide.sh build/pyodide $(BIN)/python
	@$(BIN)/python -m murmuration.lessons.folder build/pyodide build/play

bench: setup
	$(BIN)/python -m benchmarks --out runs/bench

mutants: setup
	$(BIN)/python -m benchmarks.mutants mutants.jsonl

clean:
	rm -rf $(VENV) *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
