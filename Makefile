# Two commands matter: `make demo` shows the main job, `make test` checks everything.
# Both make their own environment on a machine that has only git, make and python3; as root with apt, `make test` fetches
# a Chromium too.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Processes that run the tests: one waits for a server or a browser while the other computes. 0 runs all in one.
WORKERS ?= 2

# The tests start hundreds of interpreters, and each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types imports unit browser format nightly bench clean

demo: $(STAMP)
	$(BIN)/tensorplay bench --directory demo --fresh

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

$(STAMP): pyproject.toml scripts/setup
	PYTHON="$(PYTHON)" VENV="$(VENV)" sh scripts/setup
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist demo *.egg-info
