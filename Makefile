# make help says what there is.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# Where the environment forbids compiled modules, every process would compile torch anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup browser demo test check long kernels lint

help: ## what there is to make
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /|/' | awk -F"|" '{printf "make %-8s %s\n", $$1, $$2}'

setup: $(STAMP) ## a virtual environment with everything, pinned

# torch goes first and pinned: an open range pulls gigabytes of GPU packages.  Modules are compiled
# as they are imported, not all of them now.
$(STAMP): pyproject.toml constraints.txt
	@echo "setting up .venv (a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(MAKE) --no-print-directory browser
	@touch $(STAMP)

# Debian's chromium opens our pages in tests; elsewhere, or without rights, they are skipped.
browser: ## chromium for the tests of the pages
	@command -v chromium >/dev/null || (command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
	  && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null) \
	  || echo "no chromium here: tests of the pages will be skipped"

demo: setup ## draw a town, train three systems, report who finds the tail
	$(BIN)/evenplace demo

lint: setup ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Two at a time, a file on one worker, the longest first (tests/conftest.py); a thread each, so that
# they do not fight for the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

test: setup ## every test but those of make long: some ten minutes on two cores
	$(PYTEST)

long: setup ## what takes minutes: the documents typed, every export, a bare environment
	$(PYTEST) -m long

check: lint ## its quick half: some minutes
	$(PYTEST) -m "not slow"

# The tests that compare numbers once more, with the kernels of a processor of 2008: what holds
# with those and with one's own is not the rounding of one machine.
KERNELS := ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2 ATEN_CPU_CAPABILITY=default
kernels: setup ## the tests of numbers, with another processor's kernels
	$(KERNELS) $(PYTEST) -m "not slow" tests/losses tests/networks tests/evaluation tests/retrieval \
	  tests/training/test_loop.py tests/training/test_resume.py \
	  $(addprefix --ignore=tests/retrieval/test_,exact.py update.py index.py example.py)
