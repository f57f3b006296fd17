# Everything is run from .venv. `make setup` makes it with what a user needs; the targets that only
# developers need add the rest, and all of them keep it up to date.
PYTHON ?= python3
BIN := .venv/bin
# Python compiles modules when they are imported: few of all that are installed.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Without bytecode on disk each process would compile all modules that it imports: seconds for each.
unexport PYTHONDONTWRITEBYTECODE
# Installs an extra. Those of developers have a hundred packages: uv installs them in a third of the time.
# It knows nothing of pip's settings, so pip does it where another index is set, or where uv fails.
editable = $(PIP) --editable '.[$(1)]'
many = { ! $(BIN)/python -m pip config list | grep -q index && $(PIP) uv && \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[$(1)]'; } || $(call editable,$(1))
STAMP := .venv/.installed
# Prints the dependencies that are enough to compile kernels.
COMPILER := import tomllib; needed = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]; \
	print(*(one for one in needed if one.startswith(("numpy", "numba"))), sep="\n")
# Prints the package of Spark. It isn't installed as an extra: tests run meanwhile, and pip would take shoal away for a moment.
OF_SPARK := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["spark"])
DEV := .venv/.installed-dev
SPARK := .venv/.installed-spark
NIGHTLY := .venv/.installed-nightly
DOCS := .venv/.installed-docs
# The servers and tools that tests start: without one of them, its tests are skipped.
SERVERS := chromium chromium-driver logrotate mosquitto openssl postgresql prometheus shellcheck systemd
KUBECONFORM := github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
# What is installed at first: `make test` installs everything at once, while kernels compile.
EXTRA := live
# Tests wait for servers and clocks, too: in plain Python, where nothing compiles, three share two cores.
WORKERS := 2
plain: WORKERS := 3
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --durations 25

# The level of processors that `make wheel` compiles for.
CPU ?= x86-64-v3

.PHONY: help setup servers demo broker wheel test lint types layers compiled plain nightly rest recompiled replain torture fuzz mutants soak bench figures docs clean

help:  ## say what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## / - /' | sed 's/^/make /'

setup: $(STAMP)  ## make .venv with what a user needs, and compile what the demo needs

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("shoal needs Python 3.11 or later, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "==> setting up .venv (once; again when pyproject.toml changes)"
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv .venv
	@echo "==> installing NumPy and Numba"
	@$(BIN)/python -c '$(COMPILER)' > .venv/compiler.txt
	@$(PIP) --requirement .venv/compiler.txt
	@echo "==> installing shoal and what else it needs, and compiling what the demo needs meanwhile"
	@PYTHONPATH=src $(BIN)/python -m shoal.run.ahead & \
		{ $(if $(filter live,$(EXTRA)),$(call editable,live),$(call many,$(EXTRA))); }; status=$$?; \
		if test $$status = 0; then echo "==> installed; compiling the rest"; \
			$(BIN)/shoal warm --demo || echo "==> the first run will compile instead"; fi; \
		wait; exit $$status
	@touch $(STAMP)

$(DEV): pyproject.toml
	@echo "==> installing what only developers need, too: pytest, mypy, and so on (once)"
	@if test $(STAMP) -nt pyproject.toml; then $(call many,dev); \
		else $(MAKE) --no-print-directory setup EXTRA=dev; fi
	@touch $(DEV)

$(SPARK): pyproject.toml $(DEV)
	@echo "==> installing Spark, too (once; it is large)"
	@$(PIP) "$$($(BIN)/python -c '$(OF_SPARK)')"
	@touch $(SPARK)

$(NIGHTLY): pyproject.toml $(SPARK)
	@echo "==> installing what only make nightly and benchmarks need, too (once)"
	@$(call many,nightly)
	@touch $(NIGHTLY)

servers:  ## install the servers and tools that nightly tests start, if you are root on Debian
	@if test "$$(id -u)" = 0 && command -v apt-get > /dev/null; then \
		dpkg -s $(SERVERS) > /dev/null 2>&1 || { echo "==> installing the servers that tests start"; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
			$(SERVERS) > /dev/null; }; \
		else echo "==> tests of servers that aren't installed are skipped; they need: $(SERVERS)"; fi
	@if test -d .venv && ! test -x $(BIN)/kubeconform && command -v go > /dev/null; then \
		echo "==> installing kubeconform, which judges the manifest for Kubernetes"; \
		GOBIN=$(CURDIR)/$(BIN) go install $(KUBECONFORM) || echo "==> its test is skipped"; fi

demo: $(STAMP)  ## a live stream, anonymized before your eyes
	@$(BIN)/shoal demo

broker: $(STAMP)  ## a real Kafka broker on 127.0.0.1:9092, with the topics people and public
	@$(BIN)/python -m shoal.testing.broker --port 9092 --topics people,public

wheel: $(STAMP)  ## a wheel for this platform in dist, with all kernels compiled for CPU=x86-64-v3
	@rm -rf build/kernels
	@$(BIN)/shoal warm --cpu $(CPU) --into build/kernels
	@SHOAL_WHEEL_KERNELS=build/kernels $(BIN)/python -m pip wheel --quiet --disable-pip-version-check \
		--no-deps --wheel-dir dist .
	@ls -l dist

test: $(DEV)  ## the tests that the CI runs, in about 15 minutes
	@$(MAKE) --no-print-directory lint layers
	@$(MAKE) --no-print-directory --jobs 2 types compiled
	@$(MAKE) --no-print-directory plain

lint: $(DEV)  ## ruff: style, format, docstrings; codespell: spelling
	@echo "==> lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/codespell

types: $(SPARK)  ## mypy, strict
	@echo "==> types"
	@$(BIN)/mypy

layers: $(DEV)  ## import-linter: who may import whom
	@echo "==> layers"
	@$(BIN)/lint-imports --no-cache

compiled: $(DEV)  ## the part of `make test` that runs compiled: engines and algorithms
	@echo "==> engines and algorithms, compiled (from an empty cache it takes minutes to compile the kernels)"
	@$(PYTEST) tests -m 'compiled and not nightly'

plain: $(SPARK)  ## the part of `make test` that runs in plain Python: everything else
	@echo "==> everything else, in plain Python"
	@NUMBA_DISABLE_JIT=1 $(PYTEST) tests src --doctest-modules -m 'not compiled and not nightly' $(COVERAGE)

nightly rest recompiled replain: export SHOAL_TEST_EXAMPLES = all
nightly: export COVERAGE = --cov --cov-report=term-missing:skip-covered --cov-fail-under=95
nightly: test rest recompiled replain  ## every test there is, with all examples and coverage; all that decide, compiled and in plain Python (hours)

rest: $(NIGHTLY) servers  ## the second part of `make nightly`: what `make test` leaves out, compiled
	@echo "==> what make test leaves out, compiled"
	@$(PYTEST) tests -m nightly

recompiled: $(NIGHTLY)  ## its third part: kernels and runs, which `make test` runs in plain Python, compiled
	@echo "==> kernels and runs, which make test runs in plain Python, compiled"
	@$(PYTEST) tests/engine/kernels tests/arrow tests/run -m 'not nightly'

replain: $(NIGHTLY)  ## its last part: what `make test` runs compiled, and the twins, in plain Python
	@echo "==> what make test runs compiled, and the twins, in plain Python"
	@NUMBA_DISABLE_JIT=1 $(PYTEST) tests/algorithms tests/engine tests/identity tests/naive

torture: $(SPARK)  ## jobs on files and on Kafka, killed 500 times each, and at every call to the disk
	@SHOAL_KILLS=500 SHOAL_CRASH_STEP=1 $(BIN)/python -m pytest -q tests/crashes -n 2

fuzz: $(DEV)  ## a million changed files, messages and job files (COUNT=, SEED=): no crash, no hang, no leak
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m tests.fuzz --count $(or $(COUNT),1000000) --seed $(or $(SEED),0)

mutants: $(DEV)  ## change the code that a promise hangs on, one place at a time: do tests notice? (COUNT=, SEED=, ONLY=)
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m tests.mutants --count $(or $(COUNT),0) --seed $(or $(SEED),0) $(ONLY)

soak: $(NIGHTLY)  ## 30 minutes of Kafka to Kafka at full speed: is everything flat?
	@$(BIN)/python -m benchmarks.live soak --minutes 30

bench: $(NIGHTLY)  ## algorithms against the pass-through and their naive twins, audited, and Kafka to Kafka
	@$(BIN)/python -m benchmarks.start
	@$(BIN)/python -m benchmarks.limit
	@$(BIN)/python -m benchmarks.throughput
	@$(BIN)/python -m benchmarks.on_deadline
	@$(BIN)/python -m benchmarks.tables
	@$(BIN)/python -m benchmarks.tide
	@$(BIN)/python -m benchmarks.events
	@$(BIN)/python -m benchmarks.trees
	@$(BIN)/python -m benchmarks.spark
	@$(BIN)/python -m benchmarks.audited
	@$(BIN)/python -m benchmarks.live throughput
	@$(BIN)/python -m benchmarks.live checkpoints

figures: $(NIGHTLY)  ## the figures of the papers, as tables and SVG
	@$(BIN)/python -m benchmarks.figures

$(DOCS): pyproject.toml $(STAMP)
	@echo "==> installing what the site needs, too: Sphinx, MyST and Furo (once)"
	@test $(NIGHTLY) -nt pyproject.toml || $(call editable,docs)
	@touch $(DOCS)

docs: $(DOCS)  ## the documentation as a site, in build/site; TAGS='v0.1.0' builds these versions, too
	@NUMBA_DISABLE_JIT=1 $(BIN)/python docs/site/build.py $(addprefix --tag ,$(TAGS))
	@echo "==> open build/site/index.html"

clean:  ## forget .venv and all caches
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* .import_linter_cache bench-data
