# Two commands for people: `make demo` and `make test`. Each creates .venv first when it is missing or out of date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
TEST_STAMP := $(VENV)/.test-ready
DOCS_STAMP := $(VENV)/.docs-ready
# Bytecode of what is never imported takes time and 77 MB.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e

.PHONY: setup demo docs test test-full lint bench fuzz fuzz-long hostile mutants supply notebook constraints clean

# What it takes to use dynident: simulation and Parquet besides the library itself.
setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ".[mujoco,parquet]"
	@touch $(STAMP)
	@echo "Ready: $(BIN)/dynident"

# What it takes to test it, in the same place.
$(TEST_STAMP): $(STAMP)
	$(INSTALL) ".[test]"
	@touch $(TEST_STAMP)

demo: setup
	@$(BIN)/dynident identify examples/demo/arm.yaml examples/demo/fourier_1.csv.gz examples/demo/fourier_2.csv.gz \
		--validation examples/demo/wandering.csv.gz -o build/demo
	@echo
	@$(BIN)/python examples/demo_payload.py
	@echo
	@echo "Report: build/demo/report.html"

lint: $(TEST_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n auto --dist loadfile -m "not full"

test-full: lint
	$(BIN)/pytest -n auto --dist loadfile

# Sphinx is installed for those who ask for it; it reads only pages that have changed since.
$(DOCS_STAMP): $(STAMP)
	$(INSTALL) ".[docs]"
	@touch $(DOCS_STAMP)

docs: $(DOCS_STAMP)
	@$(BIN)/python -m sphinx -q -W --keep-going -j auto docs build/docs
	@echo "Documentation: build/docs/index.html"

# `make bench PLOT=docs/scaling.svg` redraws the picture of the documentation.
PLOT ?= build/scaling.svg
bench: $(TEST_STAMP)
	$(BIN)/python benchmarks/run.py $(PLOT)

# Damaged files of every kind, a minute for each: `make fuzz SECONDS=180 TARGETS="mcap npz"`. Guided by coverage where
# atheris is installed (pip install -e .[fuzz]); what is found stands in build/fuzz/defects, and becomes a test.
SECONDS ?= 60
TARGETS ?=
fuzz: $(TEST_STAMP)
	$(BIN)/python tools/fuzz.py $(TARGETS) --seconds $(SECONDS)

# On to a million mutations over all kinds; may be stopped at any time and goes on where it was.
fuzz-long: $(TEST_STAMP)
	$(BIN)/python tools/fuzz.py --engine mutations --total 1000000 --seconds 1000000

# The collection of hostile files, made and read one by one.
hostile: $(TEST_STAMP)
	$(BIN)/python tools/hostile.py

# Runs the notebook again and keeps what it shows.
notebook: $(TEST_STAMP)
	$(BIN)/python tools/run_notebook.py examples/first_steps.ipynb

# Versions the tests run with; UPGRADE=1 takes the newest of everything.
constraints:
	$(PYTHON) tools/constraints.py $(if $(UPGRADE),--upgrade)

# Small mistakes put into the sources, which the tests have to find; a second call goes on with what is left.
mutants: $(TEST_STAMP)
	$(BIN)/python tools/mutants.py

# Licenses of what is pinned, and known advisories where their data can be had.
supply: $(TEST_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python tools/supply.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
