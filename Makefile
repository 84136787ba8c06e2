# `make demo` tries the service, `make test` checks it. Both need Python 3.11 or newer and make.
# Everything else is fetched into .venv; each file must match its hash in requirements.lock.

PYTHON ?= python3
ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder
AUDIT_RUNS ?= 5000
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Compiled Python files are kept (.gitignore lists them). The tests start hundreds of processes, and
# compiling the app in each would take longer than loading it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo serve test check unit audit image lint bench plots pictures docs lock clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile

setup: .venv/runtime ## build .venv with the programs bursard and bursar

demo: setup ## serve demo data on this machine and print a question to paste
	@$(BIN)/bursard demo

serve: setup ## serve with the BURSAR_ settings of the environment
	@$(BIN)/bursard serve

test: lint .venv/spark .venv/oldest .venv/newest .venv/browser .venv/programs ## check style, types and imports, then run the tests (ARGS= goes to pytest)
	@$(BIN)/python -m pytest $(ARGS)

check: .venv/development ## in two minutes: style, types, imports, and all tests that start no server
	@$(MAKE) --no-print-directory --jobs 2 lint unit

unit: .venv/development
	@$(BIN)/python -m pytest -q -m 'not audit and not served and not thorough' \
	  --hypothesis-profile quick -n 2 --dist worksteal

audit: .venv/development ## long statistical and crash runs: a table, and build/audit.json (takes long)
	@AUDIT_RUNS=$(AUDIT_RUNS) $(BIN)/python -m pytest -p tests.audit -m invariant --timeout 3600 $(ARGS)

image: .venv/development ## build the image's steps in a clean system, and serve from it (root and debootstrap, or Docker)
	@command -v debootstrap > /dev/null || apt-get install -y -qq debootstrap > /dev/null || true
	@$(BIN)/python -m pytest -m audit --durations=5 tests/operations/test_image.py

lint: .venv/development ## check style, types and imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: .venv/development ## measure, and compare with the goals
	@$(BIN)/python -m benchmarks

plots: .venv/development ## measure docs/accuracy.svg and the errors in docs/guide/mechanisms.md again
	@$(BIN)/python -m benchmarks.accuracy
	@$(BIN)/python -m docs.tools.measure_guide

pictures: .venv/browser ## draw the pictures of the documentation again, and photograph the pages
	@$(BIN)/python -m docs.tools.draw_architecture
	@$(BIN)/python -m docs.tools.draw_guide
	@$(BIN)/python -m tests.web.screenshots

docs: .venv/development ## build the documentation as a site into build/site, offline
	@$(BIN)/python -m docs.tools.build_site

lock: ## resolve requirements.lock again (maintainers; needs uv)
	@$(PYTHON) .ci/lock.py

clean: ## remove the files that make built; ledgers and data stay
	@rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find app benchmarks migrations tests -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'Python 3.11 or newer is needed; name one: make $(MAKECMDGOALS) PYTHON=python3.11' >&2; \
	  exit 1; }
	@echo 'Building .venv; the first time this takes a minute or two.'
	@$(PYTHON) -m venv --clear .venv || { \
	  rm -rf .venv; \
	  echo '$(PYTHON) cannot make virtual environments. On Debian and Ubuntu type:' >&2; \
	  echo '  sudo apt-get install python3-venv' >&2; \
	  exit 1; }

# Two stamp files: a newer lock or project file installs again, otherwise there is nothing to do.
# They are deleted when the Python that .venv points to is gone.
$(shell test -x $(BIN)/python || rm -f .venv/runtime .venv/development)

.venv/runtime: requirements.lock pyproject.toml setup.py client/pyproject.toml | $(BIN)/python
	@sed '/^# --- development ---$$/,$$d' requirements.lock > .venv/runtime.lock
	@$(PIP) --require-hashes --requirement .venv/runtime.lock
	@$(PIP) --no-deps --no-index --no-build-isolation --editable . --editable client
	@touch $@

.venv/development: .venv/runtime
	@sed '/^# --- spark ---$$/,$$d' requirements.lock > .venv/development.lock
	@$(PIP) --require-hashes --requirement .venv/development.lock
	@touch $@

# The oldest and the newest packages that the client works with, for its own suite.
.venv/oldest .venv/newest: .venv/%: client/%.lock | .venv/development
	@rm -rf $@
	@$(PIP) --require-hashes --no-deps --target $@ --requirement $<
	@touch $@

# Chromium for the tests of the pages. Without it, and without the means to install it, those tests
# are skipped, loudly.
.venv/browser: | .venv/development
	@command -v chromium chromium-browser > /dev/null || { \
	  echo 'Installing Chromium for the tests of the pages.'; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null; \
	} || echo 'There is no Chromium on this machine: the tests of the pages will be skipped.' >&2
	@touch $@

# Caddy for the tests of the proxy, and promtool for those of the monitoring. Without them, and without
# the means to install them, those tests are skipped, loudly.
.venv/programs: | .venv/development
	@command -v caddy > /dev/null && command -v promtool > /dev/null || { \
	  echo 'Installing Caddy and Prometheus for the tests of the operations guide.'; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends caddy prometheus > /dev/null; \
	} || echo 'There is no Caddy or promtool on this machine: some tests will be skipped.' >&2
	@touch $@

# Apache Spark for the tests of its engine. It is large and needs Java; without Java it is left out,
# and its tests are skipped. It is built where it is installed, with the tools in .venv.
.venv/spark: requirements.lock | .venv/development
	@if command -v java > /dev/null; then \
	  echo 'Fetching Apache Spark for the tests; the first time this takes a minute or two.'; \
	  sed '1,/^# --- spark ---$$/d' requirements.lock > .venv/spark.lock; \
	  $(PIP) --require-hashes --no-deps --no-build-isolation --upgrade \
	    --target $@ --requirement .venv/spark.lock; \
	else \
	  echo 'There is no Java on this machine: the tests of Apache Spark will be skipped.' >&2; \
	  mkdir -p $@; \
	fi
	@touch $@
