# Two commands matter: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.compiled

.PHONY: setup compiled demo browser test lint types bench reference clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Kerneltrail needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# Compiled once for each version of the code, kept on disk. Two processes that compile at the same time may keep
# code that differs in a last bit, so it is done before any test.
compiled: $(COMPILED)

$(COMPILED): $(STAMP) $(wildcard src/kerneltrail/gp/*.py src/kerneltrail/gp/*/*.py src/kerneltrail/kernels/*.py)
	$(BIN)/python -m kerneltrail.gp.compilation
	@touch $@

demo: compiled
	$(BIN)/kerneltrail demo --out demo

# The pages' scripts are tested in a Chromium. Without one these tests are skipped, but where CI is set they fail.
CHROMIUM := chromium chromium-browser google-chrome google-chrome-stable chrome
APT := env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20

browser:
	@for name in $(CHROMIUM); do command -v $$name >/dev/null 2>&1 && exit 0; done; \
	command -v apt-get >/dev/null 2>&1 || exit 0; \
	if [ "$$(id -u)" = 0 ]; then as=; elif sudo -n true 2>/dev/null; then as="sudo -n"; else exit 0; fi; \
	echo "No Chromium found: installing one for the tests of the pages"; \
	{ $$as $(APT) update && $$as $(APT) install -y --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 || \
		echo "Chromium could not be installed"

# Compiling takes as long as checking types does, so they run side by side.
test: setup browser
	$(MAKE) --no-print-directory --jobs 2 compiled lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

bench: compiled
	$(BIN)/kerneltrail bench all --json bench.json

reference: setup
	$(BIN)/python scripts/reference.py

clean:
	rm -rf $(VENV) demo bench.json
