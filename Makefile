# Every target makes the environment it needs; a second call changes nothing.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# PyTorch first and by its exact version: a range, or a package that depends on it,
# may bring another build, with gigabytes of libraries for accelerators.
TORCH := $(shell grep '^torch==' constraints.txt)

INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev

.PHONY: help demo test data install install-dev check format docs clean
.DEFAULT_GOAL := help

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install  ## Train on real data with and without fair rules, and show tables and a figure
	$(BIN)/fedaccord demo --out runs/demo

test: install  ## Run the fast tests
	$(BIN)/python -m pytest -n auto

data: install-dev  ## Make a data_dir of full datasets in data/ (SOURCE=folder of their archives)
	$(BIN)/python scripts/prepare_data.py --out data $(if $(SOURCE),--source $(SOURCE))

install: $(INSTALLED)  ## Make .venv with everything that the demo and the tests need

install-dev: $(INSTALLED_DEV)  ## Add the tools for checks and documentation

check: install-dev  ## Check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: install-dev  ## Format, and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: install-dev  ## Build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:  ## Remove builds and caches; .venv and runs stay
	rm -rf build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; found = sys.version.split()[0]; sys.exit(None if sys.version_info >= (3, 11) else f"fedaccord needs Python 3.11 or newer. Found {found} as `$(PYTHON)`. Name another one, for example `make test PYTHON=python3.12`.")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing $(TORCH) and fedaccord into $(VENV); this takes a few minutes the first time."
	@$(PIP) "$(TORCH)"
	@$(PIP) -e ".[plots,test]"
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	@$(PIP) -e ".[dev]"
	@touch $@
