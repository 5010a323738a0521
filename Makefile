# `make` installs into .venv; every other target does so first where it is missing or stale.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
TWOVIEW := $(BIN)/twoview
MODELS := popularity sasrec contrastvae

.PHONY: install demo test check slow clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(TWOVIEW) prepare synthetic --out demo/shop --force
	set -e; for model in $(MODELS); do $(TWOVIEW) train $$model demo/shop --out demo/runs/$$model --epochs 15 --force; done
	$(TWOVIEW) compare $(MODELS:%=demo/runs/%)
	$(TWOVIEW) recommend demo/runs/contrastvae --user "$$(head -n 1 demo/shop/users.txt)"

test: $(STAMP)
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --ignore tests/story

slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

clean:
	rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
