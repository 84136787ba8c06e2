# `make demo` tries the service, `make test` checks it. Both need Python 3.11 or newer and make;
# everything else is fetched into .venv, each file by its hash in requirements.lock.

PYTHON ?= python3
ARGS ?= -n 2 --dist loadfile
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: help setup demo serve test lint bench plots lock clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile

setup: .venv/runtime ## build .venv with what the service needs

demo: setup ## serve demo data on this machine and print a question to paste
	@$(BIN)/bursard demo

serve: setup ## serve, as the BURSAR_ settings say
	@$(BIN)/bursard serve

test: lint ## check style, types and imports, then run every test (ARGS= goes to pytest)
	@$(BIN)/python -m pytest $(ARGS)

lint: .venv/development ## check style, types and imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: .venv/development ## measure, and compare with the goals
	@$(BIN)/python -m benchmarks

plots: .venv/development ## draw docs/accuracy.svg anew, on the demo data
	@$(BIN)/python -m benchmarks.accuracy

lock: ## resolve requirements.lock anew (maintainers; needs uv)
	@$(PYTHON) .ci/lock.py

clean: ## remove what make built; ledgers and data stay
	@rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

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

# The two stamps: a newer lock or project file installs again, otherwise there is nothing to do.
# They are void when the Python that .venv points to is gone.
$(shell test -x $(BIN)/python || rm -f .venv/runtime .venv/development)

.venv/runtime: requirements.lock pyproject.toml | $(BIN)/python
	@sed '/^# --- development ---$$/,$$d' requirements.lock > .venv/runtime.lock
	@$(PIP) --require-hashes --requirement .venv/runtime.lock
	@$(PIP) --no-deps --no-index --no-build-isolation --editable .
	@touch $@

.venv/development: .venv/runtime
	@$(PIP) --require-hashes --requirement requirements.lock
	@touch $@
