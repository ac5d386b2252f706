# Everything lives in .venv/. `make demo` and `make test` are the two commands a newcomer needs.
PYTHON ?= python3
BIN := .venv/bin
# one thread for BLAS: chains run in parallel processes, and the sums do not depend on the machine's cores
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-long test-all bench lint calibration experiment decisions picture lock clean

.venv/installed: pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "whyact needs Python 3.11 or later; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable '.[test,lint]'
	touch .venv/installed

demo: .venv/installed
	$(BIN)/whyact demo

# what a change should pass, in about a quarter of an hour on two cores
test: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15

# what is long by nature: Geweke's tests, cold compilation, kills, whole studies
test-long: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15 -m long

test-all: test test-long

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# ratios against matrix products and literal NumPy, side by side in one process
bench: .venv/installed
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/prediction.py

# simulation-based calibration at its large size
calibration: .venv/installed
	$(BIN)/python -m pytest -m large -s tests/sampler/test_calibration.py

# the paper's simulation study with 20 runs per cell, its arguments about other models, and all pages; the rows are
# stored, so this runs only what is missing (everything takes two and a half hours, with RESULTS=folder)
RESULTS ?= docs/results
experiment: .venv/installed
	$(BIN)/python -m experiments.simulations --runs 20 --random-state 1702 --out $(RESULTS)/simulations
	$(BIN)/python -m experiments.page $(RESULTS)/simulations --out docs/results/simulations.md
	$(BIN)/python -m experiments.alternatives --runs 21 --random-state 2404 --out $(RESULTS)/alternatives
	$(BIN)/python -m experiments.page $(RESULTS)/alternatives --out docs/results/alternatives.md
	$(BIN)/python -m experiments.page $(RESULTS)/driving --out docs/results/driving.md

# real decisions of people and controllers beside existing tools; stop it at any time, the same command continues
decisions: .venv/installed
	$(BIN)/python -m experiments.decisions --runs 5 --random-state 2607 --few-labels --out $(RESULTS)/decisions
	$(BIN)/python -m experiments.page $(RESULTS)/decisions --out docs/results/decisions.md

# the picture of the README
picture: .venv/installed
	$(BIN)/whyact demo --out docs/images/demo.png

lock: .venv/installed
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-header --no-annotate \
		pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv
