# Everything a fresh machine needs is Python 3.10 or later, make and gcc.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint types unit slow examples wheel docs-tables bench reproduce format clean

demo: $(VENV)/.demo
	$(BIN)/rflaf demo

test: lint types unit wheel

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/docs_tables.py --check

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

# What takes minutes and is not part of every test run: thousands of attacks on model files
slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow -rP

# The wheel, and not the source tree, is what users get: import all of it from elsewhere.
wheel: $(VENV)/.dev
	rm -rf build/wheel && mkdir -p build/wheel/site
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/wheel/site build/wheel/*.whl
	cd build/wheel && PYTHONPATH=site ../../$(BIN)/python ../../tools/check_wheel.py site

# The figures in README and docs, from the committed results
docs-tables: $(VENV)/.dev
	$(BIN)/python tools/docs_tables.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/fused.py
	$(BIN)/python benchmarks/theory.py
	$(BIN)/python benchmarks/estimators.py
	$(BIN)/python benchmarks/load.py
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
	rm -rf $(VENV) build dist demo-output .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e '.[cli]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e '.[all,dev]'
	touch $@ $(VENV)/.demo
