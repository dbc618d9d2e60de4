# make run [ARGS="--port 7000"]   serve on 127.0.0.1:6379, or as the options say
# make test                       formatting, lint, types and the whole test suite
# make lint | types | suite       one of its parts
# make bench [ARGS="--rounds 3"]  measures beside other servers, in 15 minutes; --help says more
# make format                     put the sources into the form that lint asks for
# make clean                      remove what these commands have made

PYTHON ?= $(shell command -v python3.11 || command -v python3)
ENV := .venv
BIN := $(ENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: run test lint types suite bench format clean

run: $(ENV)/installed
	@$(BIN)/penstock $(ARGS)

test: lint types suite

lint: $(ENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(ENV)/installed-dev
	$(BIN)/mypy

# The engine and the protocol are plain functions: nothing in them is too hard to reach for a test.
suite: $(ENV)/installed-dev
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/coverage report --include='protocol/*,storage/*' --fail-under=100

bench: $(ENV)/installed-bench
	@$(BIN)/python -m benchmarks $(ARGS)

format: $(ENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The environment is made anew when pyproject.toml has changed, and only then.
$(ENV)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(ENV)
	$(PIP) --editable .
	@touch $@

$(ENV)/installed-dev: $(ENV)/installed
	$(PIP) --editable '.[dev]'
	@touch $@

$(ENV)/installed-bench: $(ENV)/installed
	$(PIP) --editable '.[bench]'
	@touch $@

clean:
	rm -rf $(ENV) *.egg-info .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
