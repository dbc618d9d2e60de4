# make run [ARGS="--port 7000"]   serve on 127.0.0.1:6379, or as the options say, with the data in build/data; at
#                                 once in plain Python, and compiled from the next start on (PENSTOCK_COMPILE=0:
#                                 never, PENSTOCK_COMPILE=1: wait for it); tools/run.py says more
# make wheel                      a wheel with compiled modules for this platform, in dist
# make wheels                     that, and the two of plain Python: the data source of Spark, and the pipeline
# make test                       formatting, lint, types, and the tests that are not slow
# make lint | types | suite       one of its parts
# make coverage                   what these tests cover
# make coverage-engine            what those of protocol and storage cover of these, in a fifth of the time
# make coverage-plain             what tests without Java cover of the data source and the pipeline
# make test-all [TESTS="-k xadd"] formatting, lint, types, and every test with all random examples
# make compiled | plain           install that wheel, or one of plain Python, below build
# make test-compiled              the whole suite on the compiled wheel as it is installed
# make test-clients               every client library and program, and clients' own suites
# make explore                    every crash of workers of real libraries; writes benchmarks/results/explored.md
# make test-container             the image, in a container engine
# make image [IMAGE=penstock SOURCE=https://... PLATFORMS=linux/amd64,linux/arm64 ARGS=--push]
#                                 the image, with labels that say what it was built from
# make sbom [IMAGE=penstock]      what the image consists of, as CycloneDX, in dist/sbom.cdx.json
# make lock                       which Python packages the image has, anew, in their newest versions
# make reliability                every attack at its full scale, beside Redis, and the heavy tests; takes half an hour
# make test-redis-py              what is a client itself, with the redis-py that people may have: 5, 6, 7 and 8
# make test-spark                 the data source and the pipeline, on Spark, which needs Java 17
# make test-source | test-pipeline    one of the two
# make coverage-spark             what `make test-source test-pipeline COVERED=1` has covered of both
# make test-apart                 the three distributions, each as its wheel in an environment without the others
# make pipeline-histories [ARGS="--mode group --seconds 60"]  a random history of kills and losses, see
#                                 spark/penstock-pipeline/docs/pipeline-operations.md; ten minutes unless ARGS says otherwise; with --kills
#                                 --server redis-7.0 and others a row of benchmarks/results/reliability.md
# make demo                       a year of flights through a pipeline that is killed, beside pandas
# make soak                       thousands of clients for ten minutes, a million connections
# make replication-histories      real replicas under load and faults for ten minutes; ARGS="--seed 2" and others
# make fuzz [ARGS="lua --runs 9"]  random inputs for parser, dispatcher, loader, lua, payload, rdb or disk
# make mutants [ARGS="--seed 2"]  change the product in one place at a time, and list what no fast test notices; takes
#                                 half an hour; --help says more
# make bench [ARGS="--rounds 3"]  measures beside other servers, in 15 minutes; --help says more
# make docs [SOURCE=https://...]  the documentation as a site, below build/docs/site, with a link to the repository
# make pictures                   draw the pictures of the documentation again
# make bench-spark                measures the data source beside a plain loop of redis-py
# make format                     put the sources into the form that lint asks for
# make clean                      remove what these commands have made, but for the data in build/data

PYTHON ?= $(shell command -v python3.11 || command -v python3)
ENV := .venv
BIN := $(ENV)/bin
BUILDER := build/builder
COMPILED := build/compiled
PLAIN := build/plain
SUITE := build/suite
PROGRAMS := build/clients
SUITES := build/suites
LOCK := build/lock
SPARK := build/spark
# The versions of redis-py that others may hold on to: the oldest that works, and the newest 6, 7 and 8.
REDIS_PY := 5.0.1 6.4.0 7.4.1 8.1.0
DOCS := build/docs/env
NODE := tests/clients/node/node_modules
# Each worker has servers, ports and folders of its own; see tests/README.md.
# How often a test that failed is run again: not at all, unless someone says so, as .ci/run does.
RERUNS ?= 0
ONE_BY_ONE := -m pytest $(if $(filter-out 0,$(RERUNS)),--reruns $(RERUNS) --reruns-delay 2) -r fER
# One more than there are processors, as tests wait now and then: each more takes four seconds to find its tests.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST = $(ONE_BY_ONE) --numprocesses $(WORKERS) --dist worksteal
# Not those that take long, compare with a real server, or need Java.
FAST := not slow and not reference and not spark
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Tests start hundreds of processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

# What a wheel is made of.
SOURCES := setup.py pyproject.toml $(shell find tools/build penstock protocol server storage -type f ! -path "*/__pycache__/*")
# The two distributions that have nothing to do with the server: the data source of Spark, and the pipeline on it.
DATA_SOURCE := spark/pyspark-redis-streams
PIPELINE := spark/penstock-pipeline
# Where their tests find each other, and what they test.
SPARK_PATH := $(CURDIR)/$(DATA_SOURCE):$(CURDIR)/$(PIPELINE):$(CURDIR)/$(DATA_SOURCE)/tests:$(CURDIR)/$(PIPELINE)/tests:$(CURDIR)/$(PIPELINE)/examples
# As pip does it, but what happens is seen.
BUILD_WHEEL := $(BUILDER)/bin/python -c 'import sys; from setuptools.build_meta import build_wheel; \
	build_wheel(sys.argv[1], {"--global-option": ["--quiet"]})'

.PHONY: help run wheel wheels test lint types suite coverage coverage-engine coverage-plain test-all compiled plain test-compiled test-clients explore test-container \
	image drive-image sbom lock reliability soak replication-histories fuzz mutants test-redis-py test-spark test-source \
	test-apart coverage-spark test-pipeline pipeline-histories demo bench-spark bench docs pictures format clean alone

help: # what stands at the top of this file
	@sed -n '/^#/!q; s/^# //p' $(firstword $(MAKEFILE_LIST))

run:
	@exec $(PYTHON) tools/run.py run $(ARGS)

wheel: $(BUILDER)/installed
	@$(BUILD_WHEEL) dist
	@ls -t dist/penstock_server-*.whl | head -n 1

wheels: wheel
	@$(BUILDER)/bin/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation \
		--wheel-dir dist ./$(DATA_SOURCE) ./$(PIPELINE)
	@rm -rf $(DATA_SOURCE)/build $(PIPELINE)/build
	@ls dist/pyspark_redis_streams-*.whl dist/penstock_pipeline-*.whl

# Types are checked beside the tests, which wait for servers now and then. What is printed last is the time of the
# whole, with the environment if that had to be made.
test:
	@begin=$$(date +%s); $(MAKE) --no-print-directory lint || exit; \
		mkdir -p build; $(MAKE) --no-print-directory types >build/types.log 2>&1 & types=$$!; \
		$(MAKE) --no-print-directory suite; suite=$$?; \
		wait $$types; types=$$?; cat build/types.log; \
		[ $$suite = 0 ] && [ $$types = 0 ] && echo "make test took $$(($$(date +%s) - begin)) s"

lint: $(ENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(ENV)/installed-dev
	$(BIN)/python tools/build/check_types.py

suite: $(ENV)/installed-dev
	tests/in-memory $(BIN)/python $(PYTEST) -m '$(FAST)'

# What else tests try (real servers, more random examples, kills) covers nothing that these do not. Scripts run on
# stacks of their own, which costs as much again to follow, so their tests run apart.
# The engine and the protocol are plain functions: nothing in them is too hard to reach for a test.
SCRIPTS := tests/scripting tests/server/scripting
coverage: export PENSTOCK_HYPOTHESIS_PROFILE := coverage
coverage: $(ENV)/installed-clients
	$(BIN)/coverage erase
	tests/in-memory $(BIN)/coverage run $(PYTEST) -m '$(FAST)' $(SCRIPTS:%=--ignore=%)
	tests/in-memory $(BIN)/coverage run --concurrency=thread,greenlet $(PYTEST) -m '$(FAST)' $(SCRIPTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/coverage report --include='protocol/*,storage/*' --fail-under=100

# What is left is for tests of the server, and of commands: `make coverage` has all of it.
coverage-engine: export PENSTOCK_HYPOTHESIS_PROFILE := coverage
coverage-engine: $(ENV)/installed-dev
	$(BIN)/coverage erase
	tests/in-memory $(BIN)/coverage run --source=protocol,storage $(PYTEST) -m '$(FAST)' tests/protocol tests/storage
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='protocol/*,storage/*' --fail-under=98

# Of the data source and the pipeline; `make coverage-spark` has what tests on Spark cover as well.
coverage-plain: export PENSTOCK_HYPOTHESIS_PROFILE := coverage
coverage-plain: $(ENV)/installed-dev
	$(BIN)/coverage erase
	tests/in-memory $(BIN)/coverage run --source=$(DATA_SOURCE)/pyspark_redis_streams,$(PIPELINE)/penstock_pipeline \
		$(PYTEST) -m '$(FAST)' spark
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='$(DATA_SOURCE)/*' --fail-under=90
	$(BIN)/coverage report --include='$(PIPELINE)/*' --fail-under=60

test-all: lint types $(ENV)/installed-clients $(PROGRAMS)/installed
	PENSTOCK_HYPOTHESIS_PROFILE=ci tests/in-memory $(BIN)/python $(PYTEST) $(TESTS)

# What people get, below `build`: the wheel with compiled modules, and the one without.
compiled: $(COMPILED)/installed

plain: $(PLAIN)/installed

# The tests, without the sources: tests/compiled.py says which of them cannot run so, and why.
test-compiled: $(SUITE)/installed $(PROGRAMS)/installed
	rm -rf $(SUITE)/run
	mkdir $(SUITE)/run
	cp -r conftest.py tests tools docs examples spark benchmarks container fuzz .ci .github .editorconfig .pre-commit-config.yaml *.md Dockerfile Makefile pyproject.toml $(SUITE)/run
	cd $(SUITE)/run && \
		PYTHONPATH=$$(echo $(CURDIR)/$(SUITE)/lib/python*/site-packages/penstock/_packages) \
		PENSTOCK_WHEEL=$$(echo $(CURDIR)/$(COMPILED)-wheel/*.whl) \
		PENSTOCK_CLIENTS=$(CURDIR)/$(PROGRAMS) PENSTOCK_HYPOTHESIS_PROFILE=compiled \
		$(CURDIR)/$(SUITE)/bin/python $(PYTEST) -p tests.compiled $(TESTS)

# The run writes the table of benchmarks/results/clients.md.
test-clients: $(ENV)/installed-clients $(PROGRAMS)/installed $(NODE)/installed $(SUITES)/unpacked
	$(BIN)/python $(ONE_BY_ONE) -p tests.clients.results tests/clients

# The run writes the tables of benchmarks/results/explored.md.
explore: $(ENV)/installed-clients $(PROGRAMS)/installed
	$(BIN)/python -m tools.docs.explored_page

# Where no engine runs, one is started for it; where that cannot be, this fails.
test-container: $(ENV)/installed-clients
	tests/container/with-engine $(MAKE) --no-print-directory drive-image

drive-image:
	tests/container/build-image penstock:test $(BIN)/python
	PENSTOCK_IMAGE=penstock:test $(BIN)/python $(ONE_BY_ONE) -p tests.clients.results tests/container

# For other platforms than this one docker needs its plugin buildx. A version that is not committed is called dirty.
IMAGE := penstock
image:
	docker $(if $(PLATFORMS),buildx build --platform $(PLATFORMS),build) --tag $(IMAGE) \
		--build-arg VERSION="$$(sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)" \
		--build-arg REVISION="$$(git describe --always --exclude='*' --abbrev=40 --dirty 2>/dev/null)" \
		--build-arg SOURCE="$(SOURCE)" $(ARGS) .

sbom:
	@mkdir -p dist
	docker run --rm --entrypoint cat $(IMAGE) /opt/penstock/sbom.cdx.json >dist/sbom.cdx.json

# For Linux and the oldest Python that there may be, with the hashes for every processor.
lock: $(LOCK)/installed
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' >$(LOCK)/build.in
	$(LOCK)/bin/uv pip compile --quiet --upgrade --generate-hashes --no-annotate --custom-compile-command 'make lock' \
		--python-version 3.11.0 --python-platform linux --extra web --output-file container/requirements.lock \
		pyproject.toml $(LOCK)/build.in

# The run writes a table of benchmarks/results/reliability.md.
soak: $(ENV)/installed-dev
	PENSTOCK_SOAK=1 $(BIN)/python -m pytest -p tests.soak.results tests/soak

# Needs real servers in the folder PENSTOCK_REFERENCE_SERVERS; --help says more.
replication-histories: $(ENV)/installed-dev
	$(BIN)/python -m tests.replication.histories $(ARGS)

ARGS_OF_FUZZ := $(or $(ARGS),dispatcher)
fuzz: $(ENV)/installed-dev
	$(BIN)/python -m fuzz $(ARGS_OF_FUZZ)

mutants: $(ENV)/installed-mutants
	$(BIN)/python $(ONE_BY_ONE) tests/mutants
	$(BIN)/python -m tests.mutants $(ARGS)

# The first run writes tables of benchmarks/results/reliability.md.
reliability: $(ENV)/installed-dev
	$(BIN)/python -m pytest -p tests.reliability.results tests/reliability
	$(BIN)/python -m pytest -m heavy

# In the environment of Spark, which holds what all of these need, with another redis-py before its own. What starts
# Spark is left out, and a page that is tried with the servers' own programs.
WITH_REDIS_PY := tests/penstock/client tests/migration --ignore=tests/migration/test_moving.py tests/plugin/test_plugin.py \
	tests/plugin/test_aio.py $(DATA_SOURCE)/tests/source_tests/test_servers.py $(PIPELINE)/tests/pipeline_tests/plain/test_client.py
test-redis-py: $(SPARK)/installed $(REDIS_PY:%=build/redis-py/%/installed)
	for version in $(REDIS_PY); do \
		export PYTHONPATH=$(CURDIR)/build/redis-py/$$version; \
		$(SPARK)/bin/python -c 'import redis; print("redis-py", redis.__version__, flush=True)' && \
		$(SPARK)/bin/python $(ONE_BY_ONE) -m 'not slow and not reference' -k 'not spark_' $(WITH_REDIS_PY) || exit; \
	done

test-spark: test-source test-pipeline

# With COVERED=1 they are measured for `make coverage-spark`.
MEASURED := $(if $(COVERED),-m coverage run --rcfile=spark/coverage.ini)
ON_SPARK := PYTHONPATH=$(SPARK_PATH) PATH="$(CURDIR)/$(SPARK)/bin:$$PATH" $(SPARK)/bin/python $(MEASURED) $(ONE_BY_ONE)
# The run writes the table of losses in benchmarks/results/reliability.md.
test-source: $(SPARK)/installed
	$(ON_SPARK) -p source_tests.results $(DATA_SOURCE)/tests $(TESTS)

# What is plain, without Spark, is tried by `make test`.
test-pipeline: $(SPARK)/installed
	$(ON_SPARK) $(PIPELINE)/tests $(if $(COVERED),,--ignore=$(PIPELINE)/tests/pipeline_tests/plain) $(TESTS)

# What `make test-source test-pipeline COVERED=1` has measured.
coverage-spark: $(SPARK)/installed
	$(SPARK)/bin/coverage combine --quiet --rcfile=spark/coverage.ini
	$(SPARK)/bin/coverage report --rcfile=spark/coverage.ini --include='$(DATA_SOURCE)/*' --fail-under=90
	$(SPARK)/bin/coverage report --rcfile=spark/coverage.ini --include='$(PIPELINE)/*' --fail-under=90

test-apart: $(SPARK)/installed
	$(ON_SPARK) tests/apart $(TESTS)

pipeline-histories: $(SPARK)/installed
	@PYTHONPATH=$(SPARK_PATH) PATH="$(CURDIR)/$(SPARK)/bin:$$PATH" $(SPARK)/bin/python -m pipeline_tests.histories $(ARGS)

demo: $(SPARK)/installed
	@PYTHONPATH=$(SPARK_PATH) PATH="$(CURDIR)/$(SPARK)/bin:$$PATH" $(SPARK)/bin/python -m flights.demo $(ARGS)

bench-spark: $(SPARK)/installed $(COMPILED)/installed
	@$(SPARK)/bin/python -m benchmarks.spark $(ARGS)

bench: $(ENV)/installed-bench $(COMPILED)/installed $(PLAIN)/installed
	@$(BIN)/python -m benchmarks $(ARGS)
	@$(BIN)/python -m benchmarks.policies

$(BUILDER)/installed: pyproject.toml
	@echo "Penstock: making an environment to build in"
	@$(PYTHON) -m venv --clear $(BUILDER)
	@$(BUILDER)/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' >$(BUILDER)/requirements
	@$(BUILDER)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $(BUILDER)/requirements
	@touch $@

$(COMPILED)/installed: $(COMPILED)/dependencies $(COMPILED)-wheel/built
	@$(COMPILED)/bin/python -m pip --disable-pip-version-check install --quiet --force-reinstall --no-deps $(COMPILED)-wheel/*.whl
	@touch $@

# As old as its beginning: a source that has been changed since then is newer.
$(COMPILED)-wheel/built: $(SOURCES) $(BUILDER)/installed
	@rm -rf $(COMPILED)-wheel
	@mkdir $(COMPILED)-wheel
	@touch $(COMPILED)-wheel/begun
	@PENSTOCK_COMPILE=1 $(BUILD_WHEEL) $(COMPILED)-wheel
	@mv $(COMPILED)-wheel/begun $@

$(PLAIN)/installed: $(PLAIN)/dependencies $(PLAIN)-wheel/built
	@$(PLAIN)/bin/python -m pip --disable-pip-version-check install --quiet --force-reinstall --no-deps $(PLAIN)-wheel/*.whl
	@touch $@

# Not at the same time as the other one: both use build/setuptools.
$(PLAIN)-wheel/built: $(SOURCES) $(BUILDER)/installed | $(COMPILED)-wheel/built
	@rm -rf $(PLAIN)-wheel
	@PENSTOCK_COMPILE=0 $(BUILD_WHEEL) $(PLAIN)-wheel
	@touch $@

# What is being made behind `make run` is ended: it would use the same folders.
ifndef BEHIND
$(BUILDER)/installed $(COMPILED)/dependencies: | alone
endif

alone:
	@$(PYTHON) tools/run.py end

build/%/dependencies: pyproject.toml
	@$(PYTHON) -m venv --clear build/$*
	@build/$*/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' >build/$*/requirements
	@build/$*/bin/python -m pip --disable-pip-version-check install --quiet --requirement build/$*/requirements
	@touch $@

$(SUITE)/installed: $(COMPILED)-wheel/built
	$(PYTHON) -m venv --clear $(SUITE)
	$(SUITE)/bin/python -m pip --disable-pip-version-check install --quiet "$$(ls $(CURDIR)/$(COMPILED)-wheel/*.whl)[dev,clients]"
	@touch $@

# Where this checkout came from, as browsers open it, without a name and a password.
ORIGIN = $(shell git config --get remote.origin.url | \
	sed -E 's,^(ssh://)?git@([^:/]+)[:/],https://\2/,; s,//[^/]*@,//,; s,\.git$$,,')

# Warnings are errors: a link that leads nowhere, an anchor that is not there, a page nobody finds.
docs: $(DOCS)/installed
	SOURCE="$(or $(SOURCE),$(filter https://%,$(ORIGIN)))" NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict
	$(DOCS)/bin/python -m docs.site.find build/docs/site/search/search_index.json
	@echo "The site is in build/docs/site/index.html"

pictures:
	$(PYTHON) -m tools.docs.pictures

format: $(ENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The environment is made anew when pyproject.toml has changed, and only then.
$(ENV)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(ENV)
	$(PIP) --editable .
	@touch $@

# All in one go, as a second one would look at everything again; by uv, in a quarter of the time that pip takes, which
# does it where uv cannot be had, or finds nothing where it looks. Python's own pip fetches uv: one that venv copies
# takes three seconds, and uv brings a newer one.
ALL_THREE := --editable '.[dev]' --editable $(DATA_SOURCE) --editable $(PIPELINE)
$(ENV)/installed-dev: pyproject.toml $(DATA_SOURCE)/pyproject.toml $(PIPELINE)/pyproject.toml
	{ $(PYTHON) -m venv --clear --without-pip $(ENV) && \
		$(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check install --quiet 'uv>=0.5,<1' && \
		UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$PIP_INDEX_URL}" $(BIN)/uv pip install --quiet --python $(BIN)/python pip $(ALL_THREE); } || \
		{ $(PYTHON) -m venv --clear $(ENV) && $(PIP) $(ALL_THREE); }
	@touch $(ENV)/installed $@

$(ENV)/installed-bench: $(ENV)/installed
	$(PIP) --editable '.[bench]'
	@touch $@

$(ENV)/installed-mutants: $(ENV)/installed-dev
	$(PIP) --editable '.[mutants]'
	@touch $@

$(ENV)/installed-clients: $(ENV)/installed-dev
	$(PIP) --editable '.[clients]'
	@touch $@

# Spark is large, and holds some packages back.
$(SPARK)/installed: pyproject.toml $(DATA_SOURCE)/pyproject.toml $(PIPELINE)/pyproject.toml
	$(PYTHON) -m venv --clear $(SPARK)
	$(SPARK)/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[test]' --editable $(DATA_SOURCE) \
		--editable '$(PIPELINE)[test]'
	@touch $@

build/redis-py/%/installed: | $(SPARK)/installed
	$(SPARK)/bin/python -m pip --disable-pip-version-check install --quiet --target build/redis-py/$* redis==$*
	@touch $@

# Of the project itself only the source is read.
$(DOCS)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(DOCS)
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' >$(DOCS)/requirements.txt
	$(DOCS)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $(DOCS)/requirements.txt
	@touch $@

$(LOCK)/installed: $(ENV)/installed
	$(PYTHON) -m venv --clear $(LOCK)
	$(LOCK)/bin/python -m pip --disable-pip-version-check install --quiet 'uv>=0.5,<1'
	@touch $@

# Programs that need other versions of the packages above have an environment of their own.
$(PROGRAMS)/installed: tests/clients/requirements.txt tests/clients/requirements-arq.txt
	$(PYTHON) -m venv --clear $(PROGRAMS) $(PROGRAMS)-arq
	$(PROGRAMS)/bin/python -m pip --disable-pip-version-check install --quiet --requirement tests/clients/requirements.txt
	$(PROGRAMS)-arq/bin/python -m pip --disable-pip-version-check install --quiet --requirement tests/clients/requirements-arq.txt
	@touch $@

# The tests of clients, from the source packages that they are published in.
$(SUITES)/unpacked: tests/clients/suites/requirements.txt | $(ENV)/installed-dev
	rm -rf $(SUITES)
	$(BIN)/python -m pip --disable-pip-version-check download --quiet --no-deps --no-binary "$$(sed -n "s/==.*//p" $< | paste -sd,)" \
		--dest $(SUITES) --requirement $<
	for package in $(SUITES)/*.tar.gz; do tar --extract --file $$package --directory $(SUITES); done
	@touch $@

$(NODE)/installed: tests/clients/node/package.json
	cd tests/clients/node && npm install --silent --no-package-lock
	@touch $@

clean: alone
	rm -rf $(ENV) $(NODE) dist *.egg-info .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find build -mindepth 1 -maxdepth 1 ! -name data -exec rm -rf {} +
	find . -name __pycache__ -prune -exec rm -rf {} +
	@rmdir build/data 2>/dev/null; rmdir build 2>/dev/null || echo "The data of make run is still in build/data"
