# Two commands matter: `make demo` shows the main job, `make test` checks everything.
# Both make their own environment on a machine that has only git, make and python3; as root with apt, `make test` fetches
# a Chromium too. The demo leaves a .venv alone that `make test` has not made, and everything that is installed there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILED := $(wildcard tensorplay/*/*.[ch] tensorplay/*/*/*.[ch])
DEMO_VENV := $(if $(wildcard $(STAMP)),$(VENV),build/demo-venv)

# Processes that run the tests: one waits for a server or a browser while the other computes. 0 runs all in one.
WORKERS ?= 2

# The tests start hundreds of interpreters, and each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types imports unit browser format nightly bench clean

# The package is run from this folder, so that nothing is built or installed but what it needs.
demo: $(DEMO_VENV)/.installed
	$(DEMO_VENV)/bin/python -m tensorplay bench --directory demo --fresh

test: lint types imports unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

unit: browser
	$(BIN)/pytest -m "not nightly" -n $(WORKERS) --dist worksteal

browser: $(STAMP)
	VENV="$(VENV)" sh scripts/install_chromium

nightly: browser
	$(BIN)/pytest -m nightly --timeout 1800

bench: $(STAMP)
	$(BIN)/python benchmark/run_all.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml setup.py scripts/setup $(COMPILED)
	PYTHON="$(PYTHON)" VENV="$(VENV)" sh scripts/setup
	touch $(STAMP)

build/demo-venv/.installed: pyproject.toml scripts/setup
	PYTHON="$(PYTHON)" VENV=build/demo-venv sh scripts/setup --only-dependencies
	touch $@

clean:
	rm -rf $(VENV) build dist demo *.egg-info tensorplay/*/*.so tensorplay/*/*/*.so
