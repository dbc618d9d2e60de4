# make run [ARGS="--port 7000"]   serve on 127.0.0.1:6379, or as the options say
# make test                       formatting, lint, types and the whole test suite
# make lint | types | suite       one of its parts
# make compiled                   compile the hot modules into build/compiled
# make test-compiled              the suites that speak to a server, on that
# make bench [ARGS="--rounds 3"]  measures beside other servers, in 15 minutes; --help says more
# make format                     put the sources into the form that lint asks for
# make clean                      remove what these commands have made

PYTHON ?= $(shell command -v python3.11 || command -v python3)
ENV := .venv
BIN := $(ENV)/bin
COMPILED := build/compiled
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: run test lint types suite compiled test-compiled bench format clean

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

# The hot modules, compiled from the same source, in a copy that leaves the working tree as it is.
compiled: $(COMPILED)/built

test-compiled: $(COMPILED)/built
	cp -r tests docs *.md pyproject.toml $(COMPILED)
	cd $(COMPILED) && $(CURDIR)/$(BIN)/python -c 'import storage.log as m; assert "$(COMPILED)" in m.__file__ and m.__file__[-3:] == ".so"'
	cd $(COMPILED) && $(CURDIR)/$(BIN)/python -m pytest tests/conformance tests/property tests/server tests/clients

bench: $(ENV)/installed-bench $(COMPILED)/built
	@$(BIN)/python -m benchmarks $(ARGS)

$(COMPILED)/built: $(ENV)/installed-dev setup.py $(wildcard protocol/*.py storage/*.py storage/*/*.py server/*.py server/*/*.py server/*/lua/*.lua)
	rm -rf $(COMPILED)
	mkdir -p $(COMPILED)
	cp -r protocol storage server setup.py $(COMPILED)
	cd $(COMPILED) && PENSTOCK_COMPILE=1 $(CURDIR)/$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

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
	rm -rf $(ENV) build *.egg-info .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
