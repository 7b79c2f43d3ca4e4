# make demo: set up and run the main job. make test: set up and check everything. make docs: build the site.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.ready

.PHONY: demo test dist lowest bench bench-aggregators crowdlab docs gallery clean chromium postgres
.DELETE_ON_ERROR:

# The demo needs little: without the environment of the developers it makes a small one.
DEMO := $(if $(wildcard $(SETUP)),$(VENV),.venv-demo)
demo: $(DEMO)/.ready
	$(DEMO)/bin/labelonce demo

test: $(SETUP) chromium postgres
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto
	$(BIN)/mkdocs build --strict --quiet

# The report's browser tests need Chromium. Root on Debian or Ubuntu gets it installed, which is announced and can be
# refused; everybody else is told that those tests will skip.
NO_CHROMIUM ?=
chromium:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || [ -n "$(NO_CHROMIUM)" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "make: installing the system package chromium with apt-get for the report's browser tests (make test NO_CHROMIUM=1 leaves it out)"; \
		{ apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1 \
			|| echo "make: apt-get could not install chromium; the report's browser tests will skip"; \
	else echo "make: no Chromium; the report's browser tests will skip (install it with your package manager)"; fi

# The tests of several services on one database start a PostgreSQL of their own; it is installed as Chromium is.
NO_POSTGRES ?=
postgres:
	@if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || [ -n "$(NO_POSTGRES)" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "make: installing the system package postgresql with apt-get for the tests of several services (make test NO_POSTGRES=1 leaves it out)"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql; } >/dev/null 2>&1 \
			|| echo "make: apt-get could not install postgresql; the tests of several services will skip"; \
	else echo "make: no PostgreSQL; the tests of several services will skip (install it with your package manager)"; fi

# The site is built from the source text: without the developers' environment it needs only the site's own tools.
DOCS := $(if $(wildcard $(SETUP)),$(VENV),.venv-docs)
docs: $(DOCS)/.ready
	$(DOCS)/bin/mkdocs build --strict
	@echo "open site/index.html"

# Runs every example and writes docs/gallery.md with what they print and draw.
gallery: $(SETUP)
	$(BIN)/python docs/tools/gallery.py

# The two environments below are made where these variables say.
DIST ?= .venv-dist
LOWEST ?= .venv-lowest

# Builds the wheel and the source distribution, and tries the wheel in an environment of its own.
dist: $(SETUP)
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/pip install --quiet --constraint constraints.txt "$$(ls dist/*.whl)[report,images,service]"
	$(DIST)/bin/python benchmarks/installed.py

# The oldest versions that pyproject.toml allows: tests that need no extra. pyarrow 17 knows neither string_view nor NaN in
# float16, and one test uses a newer scipy: these are left out.
lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) -c "import re, tomllib; deps = tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']; \
		print(*(re.sub('>=', '==', dep) for dep in deps), sep='\n')" > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/pip install --quiet --requirement $(LOWEST)/lowest.txt pytest hypothesis pandas polars krippendorff statsmodels
	$(LOWEST)/bin/pip install --quiet --no-deps --editable .
	$(LOWEST)/bin/python -m pytest tests/aggregation/test_dawid_skene.py tests/planning/test_advice.py tests/data/test_ids.py \
		tests/data/test_gold.py tests/learning/test_softmax.py -q -W default \
		-k "not StringDType and not string_view and not float16 and not never_made_dense"

bench: .venv-bench/.ready .venv-crowdkit/.ready
	.venv-bench/bin/python benchmarks/beside_crowdkit.py
	.venv-bench/bin/python benchmarks/mbem_overhead.py

bench-aggregators: .venv-bench/.ready .venv-crowdkit/.ready
	.venv-bench/bin/python benchmarks/aggregator_speed.py

# cleanlab's CROWDLAB on the draws of the worlds, next to ours; needs the data folder.
crowdlab: .venv-cleanlab/.ready
	.venv-cleanlab/bin/python experiments/worlds.py --crowdlab

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

# The peers are measured as a user would install them, each in an environment of its own.
.venv-bench/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv-bench
	.venv-bench/bin/pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv-crowdkit/.ready: benchmarks/requirements-crowdkit.txt
	$(PYTHON) -m venv --clear .venv-crowdkit
	.venv-crowdkit/bin/pip install --quiet --requirement $<
	touch $@

.venv-cleanlab/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv-cleanlab
	.venv-cleanlab/bin/pip install --quiet --constraint constraints.txt --editable '.[images]' cleanlab==2.9.0 statsmodels
	touch $@

clean:
	rm -rf $(VENV) .venv-demo .venv-docs .venv-bench .venv-crowdkit .venv-cleanlab .venv-dist .venv-lowest dist site labelonce-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
