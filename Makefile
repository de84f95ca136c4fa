# Everything a fresh machine needs is Python 3.10 or later, make and gcc.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip --quiet --disable-pip-version-check install
PIP_INSTALL := $(BIN)/python $(PIP) -c constraints.txt

# The core: what somebody changes who adds a basis or a solver. Needs no extra.
FAST_TESTS := tests/bases tests/fused tests/rows tests/solvers tests/test_activation.py \
	tests/test_architecture.py tests/test_kernels.py tests/test_projection.py
CORE := src/rflaf/activation.py,src/rflaf/kernels.py,src/rflaf/projection.py,src/rflaf/io.py,\
	src/rflaf/bases/*,src/rflaf/fused/*,src/rflaf/rows/*,src/rflaf/solvers/*,\
	src/rflaf/fitting/*,src/rflaf/estimators/*,src/rflaf/theory/*

.PHONY: demo test lint types unit slow docs wheel test-fast test-oldest coverage release \
	examples figures docs-tables bench reproduce format clean

demo: $(VENV)/.demo
	$(BIN)/rflaf demo

test: lint types unit docs wheel

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/docs_tables.py --check

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --durations=25

# What takes minutes and is not part of every test run: thousands of attacks on model files
slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow -rP

# The site in build/site: broken links and undocumented public names are errors.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python tools/check_site.py build/site

# The wheel, and not the source tree, is what users get: import all of it from elsewhere.
wheel: $(VENV)/.dev
	rm -rf build/wheel && mkdir -p build/wheel/site
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel .
	$(BIN)/python $(PIP) --no-deps --target build/wheel/site build/wheel/*.whl
	cd build/wheel && PYTHONPATH=site ../../$(BIN)/python ../../tools/check_wheel.py site

# Under two minutes, and the environment has neither torch nor dask nor a browser.
test-fast: build/fast/.installed
	build/fast/bin/python -m pytest -n 2 -q $(FAST_TESTS)

# The same tests with the oldest versions that pyproject.toml allows; needs Python 3.10 or 3.11.
test-oldest: build/oldest/.installed
	build/oldest/bin/python -m pytest -n 2 -q $(FAST_TESTS)

# Lines and branches that the tests run: the core must have 95 %.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -q --cov --cov-report=
	$(BIN)/coverage report
	$(BIN)/coverage report --include='$(subst $() ,,$(CORE))' --fail-under=95 --format=total

# Builds wheel and sdist, and runs the quick tests of each in clean environments.
release: $(VENV)/.release
	rm -rf dist && $(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/check_release.py dist $(FAST_TESTS)

# Runs examples/*.py and writes their pictures to docs/images/examples.
examples: $(VENV)/.dev
	for script in examples/*.py; do echo "== $$script"; $(BIN)/python $$script --picture docs/images/examples || exit 1; done

# The figures of README and docs, from the committed results
figures: $(VENV)/.dev
	for script in docs/figures/*.py; do $(BIN)/python $$script || exit 1; done

# The tables of README and docs, from the committed results
docs-tables: $(VENV)/.dev
	$(BIN)/python tools/docs_tables.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/fused.py
	$(BIN)/python benchmarks/theory.py
	$(BIN)/python benchmarks/estimators.py
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/first.py
	$(BIN)/python benchmarks/attacks.py
	$(BIN)/python benchmarks/wide.py
	$(BIN)/python benchmarks/nn.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python docs/figures/scale.py

# Every table and figure of the paper, for the data there is; goes on where it was stopped. Hours.
reproduce: $(VENV)/.dev
	$(BIN)/rflaf reproduce all --seeds 3 --out results
	$(BIN)/rflaf report results -o build/report.html
	$(BIN)/python tools/docs_tables.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist demo-output .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e '.[cli]'
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e '.[docs]'
	touch $@

$(VENV)/.release: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e '.[release]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e '.[all,dev]'
	touch $@ $(VENV)/.demo $(VENV)/.docs

build/fast/.installed: pyproject.toml constraints.txt
	rm -rf build/fast && $(PYTHON) -m venv build/fast
	build/fast/bin/python $(PIP) -c constraints.txt -e '.[test]'
	touch $@

build/oldest/.installed: pyproject.toml tools/oldest.py
	rm -rf build/oldest && $(PYTHON) -m venv build/oldest
	$(PYTHON) tools/oldest.py > build/oldest/constraints.txt
	build/oldest/bin/python $(PIP) -c build/oldest/constraints.txt -e '.[test]'
	touch $@
