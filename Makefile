# make demo: set up and run the main job. make test: set up and check everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.ready

.PHONY: demo test bench bench-aggregators docs clean chromium
.DELETE_ON_ERROR:

# The demo needs little: without the environment of the developers it makes a small one.
DEMO := $(if $(wildcard $(SETUP)),$(VENV),.venv-demo)
demo: $(DEMO)/.ready
	$(DEMO)/bin/labelonce demo

test: $(SETUP) chromium
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto
	$(BIN)/mkdocs build --strict --quiet

# The report's tests need a browser; where it cannot be installed they skip and say so.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& { apt-get update -qq; apt-get install -y -qq chromium; } >/dev/null 2>&1; } || echo "no Chromium: the report's browser tests will skip"

# The site is built from the source text: without the developers' environment it needs only the site's own tools.
DOCS := $(if $(wildcard $(SETUP)),$(VENV),.venv-docs)
docs: $(DOCS)/.ready
	$(DOCS)/bin/mkdocs build --strict
	@echo "open site/index.html"

bench: .venv-bench/.ready .venv-crowdkit/.ready
	.venv-bench/bin/python benchmarks/run.py
	.venv-bench/bin/python benchmarks/overhead.py

bench-aggregators: .venv-bench/.ready .venv-crowdkit/.ready
	.venv-bench/bin/python benchmarks/aggregator_speed.py

$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv-demo/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv-demo
	.venv-demo/bin/pip install --quiet --constraint constraints.txt --editable '.[report,images]'
	touch $@

.venv-docs/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv-docs
	$(PYTHON) -c "import tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
		print(*extras['docs'], sep='\n')" > .venv-docs/requirements.txt
	.venv-docs/bin/pip install --quiet --constraint constraints.txt --requirement .venv-docs/requirements.txt
	touch $@

# Both peers are measured as a user would install them, each in an environment of its own.
.venv-bench/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv-bench
	.venv-bench/bin/pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv-crowdkit/.ready: benchmarks/requirements-crowdkit.txt
	$(PYTHON) -m venv --clear .venv-crowdkit
	.venv-crowdkit/bin/pip install --quiet --requirement $<
	touch $@

clean:
	rm -rf $(VENV) .venv-demo .venv-docs .venv-bench .venv-crowdkit site labelonce-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
