# make demo: everything, on a drawn town.  make test: what CI runs.  make check: its fast half.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup browser demo test check lint
setup: $(STAMP)

# torch goes first and pinned: an open range pulls gigabytes of GPU packages.
$(STAMP): pyproject.toml constraints.txt
	@echo "setting up .venv (a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(MAKE) --no-print-directory browser
	@touch $(STAMP)

# Debian's chromium opens our pages in tests; elsewhere, or without rights, they are skipped.
browser:
	@command -v chromium >/dev/null || (command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] \
	  && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null) \
	  || echo "no chromium here: tests of the pages will be skipped"

demo: setup
	$(BIN)/evenplace demo

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Two at a time, a file on one worker; a thread each, so that they do not fight for the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile

test: lint
	$(PYTEST)

check: lint
	$(PYTEST) -m "not slow"
